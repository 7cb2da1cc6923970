require "digest"

module Blake3
  # A hash of data that comes in pieces. One object of 2 kB, with the state inside.
  #
  # ```
  # digest = Blake3::Digest.new
  # digest << "abc" << io
  # digest.hexfinal # or `final`, or `peek`
  # ```
  #
  # It is one of the standard library's digests, and can be used like those.
  class Digest < ::Digest
    extend ClassMethods

    # How much of an `IO` is taken in at once: what the widest vectors work on.
    private CHUNK = 32 * 1024

    getter digest_size : Int32
    @hasher : Hasher

    # With *key*, a keyed hash. *size* is the number of bytes that `final` returns.
    def initialize(*, key = nil, size : Int = DIGEST_SIZE)
      @digest_size = size.to_i32
      @hasher = uninitialized Hasher
      @hasher.start(key: key)
    end

    # Derives a key from what it is fed; see `Blake3.derive_key`.
    def initialize(*, context : String | Bytes, size : Int = KEY_SIZE)
      @digest_size = size.to_i32
      @hasher = uninitialized Hasher
      @hasher.start(context: context)
    end

    # The hash of *data*, without an object.
    def self.digest(data) : Bytes
      Blake3.digest(data)
    end

    # The hash of *data* in hexadecimal, without an object.
    def self.hexdigest(data) : String
      Blake3.hexdigest(data)
    end

    # The bytes of a block.
    def block_size : Int32
      LibBlake3::BLOCK_LEN
    end

    # Fills *into* with the output from byte *at* on: of what was taken in so far, to which more can be
    # added. The output goes on for 2^64 bytes.
    def peek(into : Bytes, *, at : Int = 0) : Bytes
      @hasher.output(into, at.to_u64)
      into
    end

    # :inherit:
    def update(io : IO) : self
      buffer = uninitialized UInt8[CHUNK]
      while (size = io.read(buffer.to_slice)) > 0
        update(buffer.to_slice[0, size])
      end
      self
    end

    # :inherit:
    def hexfinal(io : IO) : Nil
      io << hexfinal
    end

    # :nodoc:
    def update_impl(data : Bytes) : Nil
      @hasher.update(data)
    end

    # :nodoc:
    def final_impl(dst : Bytes) : Nil
      @hasher.output(dst)
    end

    # :nodoc:
    def reset_impl : Nil
      @hasher.reset
    end
  end
end
