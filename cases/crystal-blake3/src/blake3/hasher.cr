module Blake3
  # The library's state, as a value: on the stack or inside an object, and never moved.
  #
  # To be declared with `uninitialized` and then started. `Hasher.new` would return it, which copies
  # all of it twice: the constructor's caller gets a copy of the result, which is itself a copy of
  # what `initialize` worked on. For data in pieces, see `Digest`.
  struct Hasher
    @state = uninitialized LibBlake3::Hasher

    # Begins a hash.
    def start(*, key : Nil = nil) : Nil
      LibBlake3.init(self)
    end

    # Begins a keyed hash.
    def start(*, key) : Nil
      bytes = key.to_slice
      unless bytes.size == KEY_SIZE
        raise ArgumentError.new("a BLAKE3 key has #{KEY_SIZE} bytes, this one #{bytes.size}")
      end
      LibBlake3.init_keyed(self, bytes)
    end

    # Begins the derivation of a key.
    def start(*, context : String | Bytes) : Nil
      bytes = context.to_slice
      LibBlake3.init_derive_key(self, bytes, bytes.size)
    end

    # Takes in *data*.
    def update(data : Bytes) : Nil
      LibBlake3.update(self, data, data.size)
    end

    # Fills *into* with the output from byte *at* on. More may be taken in afterwards.
    def output(into : Bytes) : Nil
      LibBlake3.finalize(self, into, into.size)
    end

    # :ditto:
    def output(into : Bytes, at : UInt64) : Nil
      LibBlake3.finalize_seek(self, at, into, into.size)
    end

    # Forgets what was taken in; key and context stay.
    def reset : Nil
      LibBlake3.reset(self)
    end

    # What the library's functions take.
    def to_unsafe : LibBlake3::Hasher*
      pointerof(@state)
    end
  end
end
