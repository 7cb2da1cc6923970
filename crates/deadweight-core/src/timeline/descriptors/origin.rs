//! Which side of a connection a socket is: who asks, and who answers.
//!
//! Calls show it of sockets that were made during the recording; what the recorder adds to their names, of those before.

/// How a socket came to its peer.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Not known, or no socket.
    #[default]
    Unknown,
    /// The peer connected to this process.
    Accepted,
    /// This process connected to the peer.
    Connected,
    /// Neither, as far as can be known: an end of a pair, or a socket that may be one.
    Neither,
}

/// The name of a socket without what the recorder adds to it, which is the same for all its descriptors; whether it
/// keeps messages apart; and its origin.
pub(super) fn of_name(name: &str) -> (&str, bool, Origin) {
    let Some(end) = name.strip_prefix("socket:[").and_then(|rest| rest.find(']')) else {
        return (name, false, Origin::Unknown);
    };
    let (name, added) = name.split_at("socket:[".len() + end + 1);
    let has = |word: &str| added.split(':').any(|added| added == word);
    let origin = [
        ("accepted", Origin::Accepted),
        ("connected", Origin::Connected),
        ("unnamed", Origin::Neither),
    ];
    let origin = origin.into_iter().find(|(word, _)| has(word));
    (name, has("datagram"), origin.map_or(Origin::Unknown, |(_, origin)| origin))
}
