// Two speeds that the first CPU may run at: an emulated machine has none of its own. The ports are not read by anything.
DefinitionBlock ("speeds.aml", "SSDT", 1, "DWGHT", "SPEEDS", 1)
{
    External (\_SB.CPUS.C000, DeviceObj)
    Scope (\_SB.CPUS.C000)
    {
        Name (_PCT, Package () {
            ResourceTemplate () { Register (SystemIO, 16, 0, 0x0880) },
            ResourceTemplate () { Register (SystemIO, 16, 0, 0x0882) }
        })
        // Each: MHz, mW, latency of a change and of the bus in µs, what to write, what is read then.
        Name (_PSS, Package () {
            Package () { 2000, 20000, 10, 10, 0, 0 },
            Package () { 1000, 10000, 10, 10, 1, 1 }
        })
        Name (_PPC, 0)
    }
}
