require "./blake3/lib"
require "./blake3/hasher"
require "./blake3/hex"
require "./blake3/digest"

# BLAKE3: a hash, a keyed hash and a key derivation, with output of any length.
#
# ```
# Blake3.hexdigest("abc")        # => "6437b3ac38465133ffb63b75273a8db5…"
# Blake3.digest("abc", size: 64) # => Bytes of 64
# Blake3.digest("abc", key: key) # authenticates: *key* has 32 bytes
# Blake3.derive_key("app 2026-11 session", material)
# ```
#
# These allocate their result and nothing else: the state, 1912 bytes, is on the stack and stays
# where it was made. `Blake3::Digest` is for data that comes in pieces.
module Blake3
  # Bytes of a key.
  KEY_SIZE = LibBlake3::KEY_LEN
  # Bytes of a digest, if nothing else is asked for.
  DIGEST_SIZE = LibBlake3::OUT_LEN

  # The hash of *data*, which responds to `to_slice`.
  def self.digest(data, *, key = nil, size : Int = DIGEST_SIZE) : Bytes
    digest(data, into: Bytes.new(size), key: key)
  end

  # Writes the hash of *data* to *into*, as much as has room there. Allocates nothing.
  def self.digest(data, *, into : Bytes, key = nil) : Bytes
    hasher = uninitialized Hasher
    hasher.start(key: key)
    hasher.update(data.to_slice)
    hasher.output(into)
    into
  end

  # The hash of *data* in hexadecimal.
  def self.hexdigest(data, *, key = nil, size : Int = DIGEST_SIZE) : String
    hexadecimal(size) { |into| digest(data, into: into, key: key) }
  end

  # A key for one use, which *context* names: a text that is written in the program, nowhere else
  # used, and not made at run time. *material* is the secret that it comes from, of any length.
  def self.derive_key(context : String | Bytes, material, *, size : Int = KEY_SIZE) : Bytes
    key = Bytes.new(size)
    hasher = uninitialized Hasher
    hasher.start(context: context)
    hasher.update(material.to_slice)
    hasher.output(key)
    key
  end

  # Yields a `Digest` to be fed, and returns its hash.
  def self.digest(*, key = nil, size : Int = DIGEST_SIZE, & : Digest ->) : Bytes
    digest = Digest.new(key: key, size: size)
    yield digest
    digest.final
  end

  # Yields a `Digest` to be fed, and returns its hash in hexadecimal.
  def self.hexdigest(*, key = nil, size : Int = DIGEST_SIZE, & : Digest ->) : String
    digest = Digest.new(key: key, size: size)
    yield digest
    digest.hexfinal
  end

  # The version of the C library.
  def self.version : String
    String.new(LibBlake3.version)
  end

  # A string of twice *size* digits, whose second half first holds the bytes that are its digits.
  private def self.hexadecimal(size : Int, & : Bytes ->) : String
    String.new(2 * size) do |buffer|
      bytes = Bytes.new(buffer + size, size)
      yield bytes
      Hex.write(bytes, buffer)
      {2 * size, 2 * size}
    end
  end
end
