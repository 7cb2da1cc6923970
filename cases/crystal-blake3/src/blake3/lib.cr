# The official C library, as it is.

# Sizes and functions of `blake3.h`.
@[Link("blake3")]
lib LibBlake3
  KEY_LEN   =   32
  OUT_LEN   =   32
  BLOCK_LEN =   64
  STATE_LEN = 1912

  # Opaque here: the library alone knows what is in it. Words, because it must be aligned like them.
  struct Hasher
    state : UInt64[239]
  end

  fun init = blake3_hasher_init(hasher : Hasher*)
  fun init_keyed = blake3_hasher_init_keyed(hasher : Hasher*, key : UInt8*)
  fun init_derive_key = blake3_hasher_init_derive_key_raw(hasher : Hasher*, context : UInt8*, size : LibC::SizeT)
  fun update = blake3_hasher_update(hasher : Hasher*, input : UInt8*, size : LibC::SizeT)
  fun finalize = blake3_hasher_finalize(hasher : Hasher*, out : UInt8*, size : LibC::SizeT)
  fun finalize_seek = blake3_hasher_finalize_seek(hasher : Hasher*, seek : UInt64, out : UInt8*, size : LibC::SizeT)
  fun reset = blake3_hasher_reset(hasher : Hasher*)
  fun version = blake3_version : UInt8*
end
