//! The parser of conditions.
//!
//! Words, numbers, quoted strings and a few signs; nothing nests, so there is no precedence. Not for evaluating them: a
//! name need not be that of a report.

use super::{Amount, Condition, FindingPattern, GateError, Order, Quantity};
use crate::account::AccountId;
use std::str::FromStr;

impl FromStr for Condition {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Self, GateError> {
        let syntax = |why: String| GateError::Syntax { condition: text.trim().to_owned(), why };
        let tokens = tokens(text).map_err(syntax)?;
        let mut reader = Reader { tokens: &tokens, at: 0 };
        let condition = reader.condition().map_err(syntax)?;
        match reader.next() {
            None => Ok(condition),
            Some(token) => Err(syntax(format!("unexpected {} at the end", token.shown()))),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name with its dots: `slow.tiny-reads`.
    Word(String),
    Number(f64),
    Text(String),
    Sign(char),
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Self::Word(word) => format!("`{word}`"),
            Self::Number(number) => format!("`{number}`"),
            Self::Text(text) => format!("\"{text}\""),
            Self::Sign(sign) => format!("`{sign}`"),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let taken = if first.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            let number =
                rest[..end].parse().map_err(|_| format!("`{}` is not a number", &rest[..end]))?;
            tokens.push(Token::Number(number));
            end
        } else if first == '"' {
            let end = rest[1..].find('"').ok_or("a quoted text has no closing quotation mark")?;
            tokens.push(Token::Text(rest[1..=end].to_owned()));
            end + 2
        } else if "<>=*(),%".contains(first) {
            tokens.push(Token::Sign(first));
            1
        } else if first.is_alphabetic() || first == '_' {
            let part = |c: char| c.is_alphanumeric() || "_-./".contains(c);
            let end = rest.find(|c: char| !part(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            end
        } else {
            return Err(format!("unexpected `{first}`"));
        };
        rest = rest[taken..].trim_start();
    }
    Ok(tokens)
}

/// `name`, if it is one of these. A mistyped name would count as 0, and a condition on it could always hold.
fn known(name: &str, all: &[&str]) -> Result<String, String> {
    if all.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(format!("`{name}` is unknown: use one of {}", all.join(", ")))
}

fn account_ids() -> Vec<&'static str> {
    AccountId::all().map(AccountId::id).collect()
}

struct Reader<'t> {
    tokens: &'t [Token],
    at: usize,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Option<&'t Token> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    fn takes(&mut self, sign: char) -> bool {
        let there = self.tokens.get(self.at) == Some(&Token::Sign(sign));
        self.at += usize::from(there);
        there
    }

    fn sign(&mut self, sign: char) -> Result<(), String> {
        if self.takes(sign) { Ok(()) } else { Err(format!("`{sign}` is missing")) }
    }

    fn word(&mut self, what: &str) -> Result<String, String> {
        match self.next() {
            Some(Token::Word(word)) => Ok(word.clone()),
            Some(token) => Err(format!("{what} is missing before {}", token.shown())),
            None => Err(format!("{what} is missing at the end")),
        }
    }

    fn number(&mut self) -> Result<f64, String> {
        match self.next() {
            Some(Token::Number(number)) => Ok(*number),
            _ => Err("a number is missing".into()),
        }
    }

    fn text(&mut self) -> Result<String, String> {
        match self.next() {
            Some(Token::Text(text)) => Ok(text.clone()),
            _ => Err("a quoted text is missing".into()),
        }
    }

    fn condition(&mut self) -> Result<Condition, String> {
        match (self.tokens.first(), self.tokens.get(1)) {
            (Some(Token::Word(word)), Some(Token::Sign('('))) => {
                self.at = 1;
                let pair = self.pair()?;
                match word.as_str() {
                    "blame" => self.blame(pair),
                    "saving" => self.saving(pair),
                    _ => Err(format!("`{word}` is neither `blame` nor `saving`")),
                }
            }
            (Some(Token::Word(word)), Some(Token::Sign('='))) => {
                self.at = 2;
                if let Some(name) = word.strip_suffix(".hazard") {
                    return Ok(Condition::Hazard(name.to_owned(), self.text()?));
                }
                let Some(name) = word.strip_suffix(".finding") else {
                    return Err(
                        "only `NAME.finding` and `NAME.hazard` can be asked with `=`".into()
                    );
                };
                Ok(Condition::Finding(name.to_owned(), self.wanted()?))
            }
            _ => {
                let left = self.amount()?;
                let order = self.order()?;
                Ok(Condition::Amounts(left, order, self.amount()?))
            }
        }
    }

    fn pair(&mut self) -> Result<[String; 2], String> {
        self.sign('(')?;
        let a = self.word("a name")?;
        self.sign(',')?;
        let b = self.word("a name")?;
        self.sign(')')?;
        Ok([a, b])
    }

    fn blame(&mut self, pair: [String; 2]) -> Result<Condition, String> {
        self.sign('=')?;
        let (text, ids) = (self.text()?, account_ids());
        let accounts = text.split('+').map(|account| known(account.trim(), &ids));
        let accounts = accounts.collect::<Result<Vec<String>, String>>()?;
        let order = self.order()?;
        let part = self.number()? / 100.0;
        self.sign('%')?;
        Ok(Condition::Blame(pair, accounts, order, part))
    }

    fn saving(&mut self, pair: [String; 2]) -> Result<Condition, String> {
        let within = self.word("`within`")?;
        let points = self.number()?;
        let unit = self.word("`points`")?;
        if within != "within" || unit != "points" {
            return Err("write `within 10 points`".into());
        }
        Ok(Condition::Saving(pair, points))
    }

    fn wanted(&mut self) -> Result<Option<FindingPattern>, String> {
        if self.tokens.get(self.at) == Some(&Token::Word("none".into())) {
            self.at += 1;
            return Ok(None);
        }
        let text = self.text()?;
        let (class, place) = match text.split_once('@') {
            Some((class, place)) => (class.trim(), Some(place.trim())),
            None => (text.trim(), None),
        };
        let (place, line) = match place.and_then(|p| Some((p, p.rsplit_once(':')?))) {
            Some((whole, (name, line))) => match line.parse() {
                Ok(line) => (Some(name), Some(line)),
                // A name of C++ has colons of its own.
                Err(_) => (Some(whole), None),
            },
            None => (place, None),
        };
        if class.is_empty() || place == Some("") {
            return Err("write \"CLASS @ PLACE\", \"CLASS\" or none".into());
        }
        let classes: Vec<&str> = AccountId::of_classes().map(AccountId::id).collect();
        Ok(Some(FindingPattern {
            class: known(class, &classes)?,
            place: place.map(str::to_owned),
            line,
        }))
    }

    fn order(&mut self) -> Result<Order, String> {
        if self.takes('<') {
            Ok(Order::Below)
        } else if self.takes('>') {
            Ok(Order::Above)
        } else {
            Err("`<` or `>` is missing".into())
        }
    }

    fn amount(&mut self) -> Result<Amount, String> {
        let of = match self.next() {
            Some(Token::Number(number)) => self.with_unit(*number)?,
            Some(Token::Word(word)) => match word.split_once('.') {
                None => Quantity::Wall(word.clone()),
                Some((name, "wall")) => Quantity::Wall(name.to_owned()),
                Some((name, unit)) if unit.contains('/') => {
                    Quantity::Metric(name.into(), unit.into())
                }
                Some((name, account)) => {
                    Quantity::Share(name.into(), known(account, &account_ids())?)
                }
            },
            Some(token) => return Err(format!("an amount is missing before {}", token.shown())),
            None => return Err("an amount is missing at the end".into()),
        };
        let factor = if self.takes('*') { self.number()? } else { 1.0 };
        Ok(Amount { of, factor })
    }

    fn with_unit(&mut self, number: f64) -> Result<Quantity, String> {
        if self.takes('%') {
            return Ok(Quantity::Part(number / 100.0));
        }
        const UNITS: [(&str, f64); 5] =
            [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
        let unit = self.word("a unit (%, ns, us, ms, s)")?;
        let size = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
        size.map(|size| Quantity::Time(number * size))
            .ok_or_else(|| format!("`{unit}` is not a unit"))
    }
}
