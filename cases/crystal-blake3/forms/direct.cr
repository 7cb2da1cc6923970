# The library's functions, called one after the other.
module Direct
  def self.hexdigest(data : Bytes) : String
    hasher = uninitialized LibBlake3::Hasher
    sum = uninitialized UInt8[32]
    LibBlake3.init(pointerof(hasher))
    LibBlake3.update(pointerof(hasher), data, data.size)
    LibBlake3.finalize(pointerof(hasher), sum.to_slice, sum.size)
    Blake3::Hex.string(sum.to_slice)
  end
end
