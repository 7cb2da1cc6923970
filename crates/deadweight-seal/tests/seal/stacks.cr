# Deep calls, blocks, objects, a collector and library code, for unwinding.
@[NoInline]
def deep(depth : Int32, n : Int32, & : Int32 -> Int32) : Int32
  yield n + depth
end

class Tree
  getter left : Tree?
  getter right : Tree?

  def initialize(depth : Int32)
    return if depth == 0
    @left = Tree.new(depth - 1)
    @right = Tree.new(depth - 1)
  end

  def count : Int32
    1 + (@left.try(&.count) || 0) + (@right.try(&.count) || 0)
  end
end

sum = 0_i64
3000.times do |i|
  sum += Tree.new(10).count
  words = (1..400).map { |n| (n &* i).to_s }
  sum += words.sort.join(' ').size
  sum += deep(i, 3) { |n| words.count { |word| word.size > n } }
end
puts sum
