module Blake3
  # Hexadecimal digits, eight at a time: for hashes of short messages the standard library's byte by
  # byte takes a tenth of the whole.
  module Hex
    # The digits of *bytes*.
    def self.string(bytes : Bytes) : String
      size = 2 * bytes.size
      String.new(size) do |buffer|
        write(bytes, buffer)
        {size, size}
      end
    end

    # Writes the digits of *bytes* to *buffer*, whose second half *bytes* may be.
    def self.write(bytes : Bytes, buffer : UInt8*) : Nil
      whole = bytes.size & ~3
      at = 0
      while at < whole
        four = uninitialized UInt32
        pointerof(four).as(UInt8*).copy_from(bytes.to_unsafe + at, 4)
        eight = digits(four)
        (buffer + 2 * at).copy_from(pointerof(eight).as(UInt8*), 8)
        at += 4
      end
      bytes[whole..].hexstring(buffer + 2 * whole) if whole < bytes.size
    end

    # The digits of four bytes, the first of each in the lower places.
    private def self.digits(four : UInt32) : UInt64
      spread = four.to_u64
      spread = (spread | spread << 16) & 0x0000ffff0000ffff_u64
      spread = (spread | spread << 8) & 0x00ff00ff00ff00ff_u64
      nibbles = (spread >> 4 & 0x000f000f000f000f_u64) | (spread & 0x000f000f000f000f_u64) << 8
      letters = (nibbles &+ 0x0606060606060606_u64) >> 4 & 0x0101010101010101_u64
      nibbles &+ 0x3030303030303030_u64 &+ letters &* 0x27_u64
    end
  end
end
