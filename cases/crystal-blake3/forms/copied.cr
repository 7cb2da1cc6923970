# A struct around the state, made by its constructor.
struct Copied
  def initialize
    @state = uninitialized UInt8[1912]
    LibBlake3.init(self)
  end

  def update(data : Bytes)
    LibBlake3.update(self, data, data.size)
  end

  def output(into : Bytes)
    LibBlake3.finalize(self, into, into.size)
  end

  def to_unsafe
    pointerof(@state).as(LibBlake3::Hasher*)
  end

  def self.hexdigest(data : Bytes) : String
    hasher = Copied.new
    sum = uninitialized UInt8[32]
    hasher.update(data)
    hasher.output(sum.to_slice)
    Blake3::Hex.string(sum.to_slice)
  end
end
