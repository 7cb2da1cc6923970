# Costs of text in Crystal programs: the first argument selects one, the second says how often.

# Adds up by a key that is made as text for each item.
@[NoInline]
def cells(count)
  sums = Hash(String, Int64).new(0_i64)
  count.times do |i|
    key = "#{i % 97}:#{i % 31}" # the key to name
    sums[key] += i
  end
  sums.values.sum
end

@[NoInline]
def checked(value)
  raise "even" if value.even? # the exception to name
  value * 3
end

# Goes on after values that are refused by an exception.
@[NoInline]
def accepted(count)
  sum = 0_i64
  count.times do |i|
    begin
      sum += checked(i)
    rescue
      sum -= 1
    end
  end
  sum
end

# Looks for the end of each item from the start of the text.
@[NoInline]
def items(text : Bytes)
  found = 0_i64
  while at = text.index(';'.ord.to_u8) # the search to name
    text[at] = ','.ord.to_u8
    found += 1
  end
  found
end

count = ARGV[1].to_i
case ARGV[0]
when "cells"    then puts cells(count)
when "accepted" then puts accepted(count)
when "items"    then puts items(("some words of an item, and more of them;" * count).to_slice.dup)
end
