//! Samples of the program's own time: the symbol roles of the library functions up to the program's own
//! innermost frame.
//!
//! Frames above that one are the reason why the program does it, not a cost of the library. Each code
//! address is classified once, so that a million samples take a million look-ups. `cost` decides what is a
//! cost, `attribute` charges it.

use crate::facts::call_site::linked_in::LinkedIn;
use crate::facts::call_site::team_code::{is_in_go_scheduler, is_in_team_code};
use crate::facts::call_site::{CallSite, image_language, is_generic_code, is_own};
use deadweight_code::Role;
use deadweight_code::machine_code::{MachineCode, SmallCallee, Waited};
use deadweight_code::symbol_role::{self, SymbolRole};
use deadweight_trace::ids::{LocationId, NameId, StackId};
use deadweight_trace::symbols::{Location, SourceFrame, Symbols};
use std::sync::OnceLock;

/// What is known of each code address, looked up at its first use.
#[derive(Debug)]
pub(crate) struct Roles {
    of_location: Vec<OnceLock<AddressRoles>>,
}

/// The frames of one code address, innermost first, up to the first of the program's own.
#[derive(Clone, Debug, Default)]
struct AddressRoles {
    symbol_roles: Vec<SymbolRole>,
    own: bool,
}

impl Roles {
    /// Without any address yet.
    pub(crate) fn new(symbols: &Symbols) -> Self {
        Self { of_location: vec![OnceLock::new(); symbols.locations.len()] }
    }

    fn of(&self, symbols: &Symbols, id: LocationId) -> Option<&AddressRoles> {
        let cell = self.of_location.get(id.index())?;
        Some(cell.get_or_init(|| read(symbols, id)))
    }

    /// The symbol role of the innermost function at an address, if it has one.
    pub(crate) fn symbol_role(&self, symbols: &Symbols, id: LocationId) -> Option<SymbolRole> {
        let address = self.of(symbols, id)?;
        address.symbol_roles.iter().copied().find(|symbol_role| *symbol_role != SymbolRole::Library)
    }

    /// The sample taken at `stack`.
    pub(crate) fn sample<'s>(
        &self,
        machine: &'s MachineCode<'s>,
        stack: StackId,
    ) -> UserSample<'s> {
        let symbols = machine.symbols();
        let leaf = symbols.stack(stack).first().copied().unwrap_or_default();
        let waited = machine.waited(leaf);
        let mut sample = UserSample {
            symbols,
            machine,
            stack,
            waited,
            symbol_roles: Vec::new(),
            own: None,
            unoptimised: false,
            allocates: false,
        };
        let callers = symbols.stack(stack).iter().skip(1).copied();
        let addresses = || std::iter::once(waited.at).chain(callers.clone());
        let linked_in = LinkedIn::default();
        for (depth, id) in addresses().enumerate() {
            let Some(address) = self.of(symbols, id) else { continue };
            let Some(location) = symbols.locations.get(id.index()) else { continue };
            sample.symbol_roles.extend(&address.symbol_roles);
            if address.own && linked_in.holds(symbols, location, depth, addresses()) {
                sample.symbol_roles.push(SymbolRole::Library);
            } else if address.own {
                sample.own = Some(id);
                break;
            }
        }
        sample
    }
}

fn read(symbols: &Symbols, id: LocationId) -> AddressRoles {
    let mut address = AddressRoles::default();
    let Some(location) = symbols.locations.get(id.index()) else { return address };
    let machine_function = location.frames.len().saturating_sub(1);
    let language = image_language(symbols, location);
    for (index, frame) in location.frames.iter().enumerate() {
        // For inlined methods Crystal keeps the bare name: the program's own `read` is not the C library's.
        let own_method =
            || symbols.name(frame.file).ends_with(".cr") && is_own(symbols, location, frame);
        let name = symbols.name(frame.function);
        let symbol_role = symbol_role::in_image(name, language).filter(|_| !own_method());
        // Inlined code copies a word as often as a buffer: there the instruction decides.
        let moves = matches!(symbol_role, Some(SymbolRole::Copy | SymbolRole::Fill))
            && index < machine_function
            && !symbol_role::is_copying_loop(name);
        match symbol_role.filter(|_| !moves) {
            Some(symbol_role) => address.symbol_roles.push(symbol_role),
            None if !moves && is_own(symbols, location, frame) => {
                address.own = true;
                break;
            }
            None => address.symbol_roles.push(SymbolRole::Library),
        }
    }
    address
}

/// A sample of the program's own time.
#[derive(Debug)]
pub(crate) struct UserSample<'s> {
    /// The symbol tables.
    pub(crate) symbols: &'s Symbols,
    /// The code.
    machine: &'s MachineCode<'s>,
    /// Where it was taken, with the callers.
    pub(crate) stack: StackId,
    /// The instruction that it waited for, with its role.
    pub(crate) waited: Waited,
    /// The symbol roles of the functions between its instruction and the program's own innermost frame,
    /// innermost first. Empty if it was taken in the program's own code.
    pub(crate) symbol_roles: Vec<SymbolRole>,
    /// The address that holds the program's own innermost frame.
    pub(crate) own: Option<LocationId>,
    /// Whether its binary was built without optimisation.
    pub(crate) unoptimised: bool,
    /// Whether other samples show that the program's own innermost function allocates.
    pub(crate) allocates: bool,
}

impl<'s> UserSample<'s> {
    /// The role of the program's own innermost instruction: of a caller, that of the call.
    pub(crate) fn own_role(&self) -> Role {
        match self.own {
            Some(own) if own == self.waited.at => self.waited.role,
            Some(own) => self.machine.role_at(own),
            None => Role::Work,
        }
    }

    /// Whether it was taken in generic library code that was compiled for the program's own types: std::sort of its
    /// structs, for example.
    pub(crate) fn in_own_instance(&self) -> bool {
        let Some((location, frame)) = self.frames().next().filter(|_| self.own.is_some()) else {
            return false;
        };
        is_generic_code(self.symbols, location, frame)
    }

    /// The role of the call of its innermost function.
    pub(crate) fn caller_role(&self) -> Role {
        let caller = self.symbols.stack(self.stack).get(1);
        caller.map_or(Role::Work, |caller| self.machine.role_at(*caller))
    }

    /// The small function that the call nearest to its instruction calls.
    pub(crate) fn small_callee(&self) -> Option<SmallCallee> {
        self.machine.small_callee(self.waited.at)
    }

    /// The small function that it was taken in, if the program's own code calls that and it is
    /// not the caller itself.
    pub(crate) fn runs_small(&self) -> Option<SmallCallee> {
        let caller = *self.symbols.stack(self.stack).get(1)?;
        let function = self.waited.function?;
        // A callback. The caller could see it where the library's code is compiled with the program.
        let location = self.symbols.locations.get(caller.index())?;
        let calling = location.frames.last()?;
        if !is_own(self.symbols, location, calling)
            && !is_generic_code(self.symbols, location, calling)
        {
            return None;
        }
        self.machine.small_callee(caller).filter(|called| called.function == function)
    }

    /// The program's own innermost frame.
    pub(crate) fn own_frame(&self) -> Option<(&'s Location, &'s SourceFrame)> {
        self.frames().nth(self.symbol_roles.len()).filter(|_| self.own.is_some())
    }

    /// The source frames, innermost first, starting at the instruction that it waited for.
    pub(crate) fn frames(&self) -> impl Iterator<Item = (&'s Location, &'s SourceFrame)> {
        CallSite::Waited(self.stack, self.waited.at).frames(self.symbols)
    }

    /// The program's own innermost function.
    pub(crate) fn own_function(&self) -> Option<NameId> {
        self.own?;
        self.frames().nth(self.symbol_roles.len()).map(|(_, frame)| frame.function)
    }

    /// The innermost symbol role.
    pub(crate) fn symbol_role(&self) -> Option<SymbolRole> {
        self.symbol_roles.iter().copied().find(|symbol_role| *symbol_role != SymbolRole::Library)
    }

    /// The names of the functions between its instruction and the program's own innermost frame, innermost first, each
    /// with its symbol role.
    pub(crate) fn library(&self) -> impl Iterator<Item = (&'s str, SymbolRole)> + '_ {
        let names = self.frames().map(|(_, frame)| self.symbols.name(frame.function));
        names.zip(self.symbol_roles.iter().copied())
    }

    /// Whether a function between it and the program's own code has this symbol role.
    pub(crate) fn under(&self, symbol_role: SymbolRole) -> bool {
        self.symbol_roles.contains(&symbol_role)
    }

    /// Whether its code waits busily: it tries without waiting, or its loop changes nothing.
    pub(crate) fn stands_still(&self) -> bool {
        let inlined = self.own == Some(self.waited.at);
        let around = || self.machine.loop_around(self.waited);
        self.own.is_some() && self.under(SymbolRole::Try)
            || inlined && around().is_some_and(|(_, around)| around.stands_still)
    }

    /// Whether it was taken in code by which threads share out work and meet.
    pub(crate) fn is_in_team_code(&self) -> bool {
        let site = CallSite::Waited(self.stack, self.waited.at);
        is_in_team_code(self.symbols, site) || is_in_go_scheduler(self.symbols, site)
    }

    /// Whether it is in a stream or a conversion: copying and filling are the work there.
    pub(crate) fn is_under_text(&self) -> bool {
        self.under(SymbolRole::Stream) || self.under(SymbolRole::Convert)
    }

    /// Whether the program's own code called the innermost function itself: then the work there is written
    /// in the program.
    pub(crate) fn is_called_directly(&self) -> bool {
        self.own.is_some()
            && self
                .symbol_roles
                .iter()
                .all(|symbol_role| Some(*symbol_role) == self.symbol_roles.first().copied())
    }
}
