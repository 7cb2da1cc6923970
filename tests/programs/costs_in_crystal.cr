# Typical costs of Crystal programs: the first argument selects one, the second says how often.
# One program for all of them, because the compiler is slow.

# 1536 bytes, of which few are filled.
struct Board
  def initialize(seed : UInt64)
    @cells = uninitialized UInt64[192]
    scatter(seed)
  end

  @[NoInline]
  def scatter(seed : UInt64) : Nil
    cells = @cells.to_unsafe
    cells[seed & 127] = seed
    cells[180] = seed &* 3
  end

  @[NoInline]
  def value : UInt64
    @cells.to_unsafe[180]
  end
end

@[NoInline]
def boards(count : Int32) : UInt64
  sum = 0_u64
  count.times do |i|
    board = Board.new(i.to_u64) # the board to name
    sum &+= board.value
  end
  sum
end

class Node
  property link : Node?
  getter value : Int32

  def initialize(@value) # the node to name
  end
end

# Keeps many small objects alive, and produces garbage meanwhile.
@[NoInline]
def nodes(count : Int32) : UInt64
  ring = Array(Node).new(300_000) { |i| Node.new(i) }
  sum = 0_u64
  count.times do |i|
    node = Node.new(i)
    node.link = ring[(i &* 7919) % ring.size]
    ring[i % ring.size] = node
    node.link.try(&.link = nil)
    sum &+= node.value.to_u64!
  end
  sum
end

# Sums the neighbours of every cell of a flat field by index.
@[NoInline]
def step(from : Slice(Int32), to : Slice(Int32), width : Int32, height : Int32)
  (1...height &- 1).each do |y|
    (1...width &- 1).each do |x|
      at = y &* width &+ x
      to[at] = from[at &- 1] &+ from[at &+ 1] &+ from[at &- width] &+ from[at &+ width] # the cell to name
    end
  end
end

def cells(count : Int32) : UInt64
  from = Slice(Int32).new(512 * 512) { |i| i &* 7 % 13 }
  to = Slice(Int32).new(512 * 512, 0)
  count.times do
    step(from, to, 512, 512)
    from, to = to, from
  end
  from[512 * 256 + 256].to_u64!
end

# Calls a small function for every pixel.
@[NoInline]
def shade(value : UInt32, by : UInt32) : UInt32
  (value &* by) >> 8
end

@[NoInline]
def pixels(count : Int32) : UInt64
  row = Slice(UInt32).new(4096) { |i| i.to_u32 }
  count.times do |i|
    (0...4096).each do |x|
      row.to_unsafe[x] = shade(row.to_unsafe[x], 250_u32) &+ 17 # the pixel to name
    end
  end
  row[77].to_u64
end

# Makes and drops a string per word.
@[NoInline]
def words(count : Int32) : UInt64
  text = "the quick brown fox jumps over the lazy dog and runs away again"
  sum = 0_u64
  count.times do
    sum &+= text.split(' ').size # the word to name
  end
  sum
end

# Clears a whole line and paints a part of it.
@[NoInline]
def lines(count : Int32) : UInt64
  line = Bytes.new(60_000)
  sum = 0_u64
  count.times do |i|
    line.fill(0_u8) # the line to clear
    (0...400).each { |x| line.to_unsafe[x * 2] = (i &+ x).to_u8! }
    sum &+= line.to_unsafe[i & 511]
  end
  sum
end

# Takes each item from the front of a list and inserts it again further back.
@[NoInline]
def turns(count : Int32) : UInt64
  queue = Array(UInt32).new(20_000) { |i| i.to_u32 }
  count.times do |i|
    first = queue.delete_at(3) # the rest to move
    queue << (first &* 7)
  end
  queue[77].to_u64
end

# Counts with atomic additions, in one thread.
@[NoInline]
def marks(count : Int32) : UInt64
  counts = StaticArray(Atomic(UInt32), 256).new(Atomic(UInt32).new(0_u32))
  count.times do |i|
    counts.to_unsafe[(i &* 31) & 255].add(1_u32) # the mark to name
  end
  counts.to_unsafe[7].get.to_u64
end

count = ARGV[1].to_i
puts case ARGV[0]
when "boards" then boards(count)
when "nodes"  then nodes(count)
when "cells"  then cells(count)
when "pixels" then pixels(count)
when "words"  then words(count)
when "lines"  then lines(count)
when "turns"  then turns(count)
when "marks"  then marks(count)
else               abort "boards, nodes, cells, pixels, words, lines, turns or marks?"
end
