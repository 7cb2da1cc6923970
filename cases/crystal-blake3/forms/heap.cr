# The state in an object of its own, made anew for each hash.
class Heap
  def initialize
    @state = uninitialized LibBlake3::Hasher
    LibBlake3.init(pointerof(@state))
  end

  def update(data : Bytes)
    LibBlake3.update(pointerof(@state), data, data.size)
  end

  def output(into : Bytes)
    LibBlake3.finalize(pointerof(@state), into, into.size)
  end

  def self.hexdigest(data : Bytes) : String
    hasher = Heap.new
    sum = uninitialized UInt8[32]
    hasher.update(data)
    hasher.output(sum.to_slice)
    Blake3::Hex.string(sum.to_slice)
  end
end
