require "benchmark"
require "digest/sha256"
require "../src/blake3"
require "./copied"
require "./direct"
require "./heap"

# Hashes a message of 32 bytes, the hash again, and so on; prints the last one. `forms ips` puts the
# forms side by side, beside OpenSSL's SHA256.

SIZE  = 32
FORMS = {
  "sha256"   => ->(data : Bytes) { Digest::SHA256.hexdigest(data) },
  "heap"     => ->Heap.hexdigest(Bytes),
  "direct"   => ->Direct.hexdigest(Bytes),
  "copied"   => ->Copied.hexdigest(Bytes),
  "in_place" => ->(data : Bytes) { Blake3.hexdigest(data) },
}

def usage : NoReturn
  abort "forms #{FORMS.keys.join('|')} COUNT\nforms ips [SECONDS]"
end

name = ARGV[0]? || usage
message = Bytes.new(SIZE) { |i| i.to_u8 }
if form = FORMS[name]?
  count = ARGV[1]?.try(&.to_i?) || usage
  count.times { form.call(message).to_slice[0, SIZE].copy_to(message) }
  puts String.new(message)
elsif name == "ips"
  seconds = ARGV[1]?.try(&.to_i?) || 5
  Benchmark.ips(calculation: seconds) do |table|
    FORMS.each { |name, form| table.report(name) { form.call(message) } }
  end
else
  usage
end
