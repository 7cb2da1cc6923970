require "spec"
require "../src/blake3"

KEY = "whats the Elvish word for friend"

# The input of the official vectors.
def input(size : Int) : Bytes
  Bytes.new(size) { |i| (i % 251).to_u8 }
end

record Vector, input : Bytes, hash : String, keyed : String, derived : String

def vectors : {String, Array(Vector)}
  context = ""
  vectors = [] of Vector
  File.each_line(File.join(__DIR__, "vectors.txt")) do |line|
    word, _, rest = line.partition(' ')
    case word
    when "#"       then next
    when "key"     then rest.should eq(KEY)
    when "context" then context = rest
    else
      hash, keyed, derived = rest.split
      vectors << Vector.new(input(word.to_i), hash, keyed, derived)
    end
  end
  {context, vectors}
end

describe Blake3 do
  it "gives the official vectors, in all modes, lengths and ways" do
    context, cases = vectors
    cases.size.should eq(35)
    cases.each do |vector|
      data = vector.input
      Blake3.hexdigest(data, size: 131).should eq(vector.hash)
      Blake3.hexdigest(data).should eq(vector.hash[0, 64])
      Blake3.digest(data).hexstring.should eq(vector.hash[0, 64])
      Blake3.hexdigest(data, key: KEY, size: 131).should eq(vector.keyed)
      Blake3.derive_key(context, data, size: 131).hexstring.should eq(vector.derived)
      Blake3.derive_key(context, data).hexstring.should eq(vector.derived[0, 64])
      {Blake3::Digest.new(size: 131)                   => vector.hash,
       Blake3::Digest.new(key: KEY, size: 131)         => vector.keyed,
       Blake3::Digest.new(context: context, size: 131) => vector.derived}.each do |digest, expected|
        data.each_slice(1000) { |part| digest << Slice.new(part.to_unsafe, part.size) }
        digest.hexfinal.should eq(expected)
        digest.reset.update(data).hexfinal.should eq(expected)
      end
    end
  end

  it "knows the C library's size of the state" do
    sizeof(LibBlake3::Hasher).should eq(LibBlake3::STATE_LEN)
    sizeof(Blake3::Hasher).should eq(LibBlake3::STATE_LEN)
    Blake3.version.should start_with("1.")
  end

  it "takes what responds to to_slice" do
    Blake3.hexdigest("abc").should eq(Blake3.hexdigest("abc".to_slice))
    Blake3.hexdigest(StaticArray[97u8, 98u8, 99u8]).should eq(Blake3.hexdigest("abc"))
  end

  it "allocates nothing but the result" do
    data = input(32)
    key = KEY.to_slice
    into = Bytes.new(32)
    allocated { Blake3.digest(data, into: into) }.should eq(0)
    allocated { Blake3.digest(data, into: into, key: key) }.should eq(0)
    allocated { Blake3.digest(data) }.should be <= 48
    allocated { Blake3.hexdigest(data) }.should be <= 80
    allocated { Blake3.hexdigest(data, key: key, size: 64) }.should be <= 160
    allocated { Blake3::Digest.hexdigest(data) }.should be <= 80
  end

  it "writes hexadecimal like the standard library" do
    256.times { |i| Blake3::Hex.string(Bytes[i, 255 - i, 0, i, 9]).should eq(Bytes[i, 255 - i, 0, i, 9].hexstring) }
    40.times { |size| Blake3.hexdigest("abc", size: size).should eq(Blake3.digest("abc", size: size).hexstring) }
  end

  it "refuses a key of another length" do
    expect_raises(ArgumentError, "32 bytes, this one 3") { Blake3.digest("data", key: "key") }
    expect_raises(ArgumentError, "32 bytes, this one 33") { Blake3::Digest.new(key: KEY + "!") }
  end

  it "refuses a negative size" do
    expect_raises(ArgumentError) { Blake3.digest("data", size: -1) }
  end

  it "gives an empty output" do
    Blake3.hexdigest("data", size: 0).should eq("")
    Blake3.digest("data", size: 0).should eq(Bytes.empty)
  end

  it "yields a digest" do
    whole = Blake3.hexdigest("abcdef")
    Blake3.hexdigest { |d| d << "abc" << "def" }.should eq(whole)
    Blake3.digest(&.update("abcdef")).hexstring.should eq(whole)
    Blake3.hexdigest(key: KEY) { |d| d << "abc" }.should eq(Blake3.hexdigest("abc", key: KEY))
    Blake3.hexdigest(size: 5, &.update("abc")).should eq(Blake3.hexdigest("abc", size: 5))
  end
end

describe Blake3::Digest do
  it "is one of the standard library's digests" do
    digest = Blake3::Digest.new.as(Digest)
    digest << "abc"
    copy = digest.dup
    digest.hexfinal.should eq(Blake3.hexdigest("abc"))
    copy.final.should eq(Blake3.digest("abc"))
    expect_raises(Digest::FinalizedError) { digest.update("more") }
    Blake3::Digest.base64digest("abc").should eq(Base64.strict_encode(Blake3.digest("abc")))
    Blake3::Digest.hexdigest(&.update("abc")).should eq(Blake3.hexdigest("abc"))
  end

  it "gives the same however the data is cut" do
    data = input(5000)
    random = Random.new(3)
    20.times do
      digest = Blake3::Digest.new
      rest = data
      until rest.empty?
        part = rest[0, random.rand(1..rest.size)]
        digest << part
        rest += part.size
      end
      digest.final.should eq(Blake3.digest(data))
    end
  end

  it "shows any part of the output, and goes on" do
    digest = Blake3::Digest.new
    digest << "abc"
    whole = Blake3.digest("abc", size: 1000)
    [0, 1, 63, 64, 65, 500, 968].each do |at|
      digest.peek(Bytes.new(32), at: at).should eq(whole[at, 32])
    end
    digest << "def"
    digest.final.should eq(Blake3.digest("abcdef"))
  end

  it "reads files and streams" do
    File.tempfile("blake3") do |file|
      file.write(input(102_400))
      file.flush
      digest = Blake3::Digest.new.file(file.path)
      digest.final.should eq(Blake3.digest(input(102_400)))
    ensure
      file.try(&.delete)
    end
    Blake3::Digest.new.update(IO::Memory.new(input(70_000))).final.should eq(Blake3.digest(input(70_000)))
  end

  it "writes to a stream at any size" do
    text = String.build { |io| Blake3::Digest.new(size: 200).update("abc").hexfinal(io) }
    text.should eq(Blake3.hexdigest("abc", size: 200))
  end
end

# Bytes of one call, on average.
def allocated(& : ->) : Int
  yield
  before = GC.stats.total_bytes
  10_000.times { yield }
  (GC.stats.total_bytes - before) // 10_000
end
