//! Foreign text for the page: control characters and invisible ones are shown as escapes, long names shortened.
//!
//! Not for HTML's own signs: `maud` escapes them.

use crate::render::page::{printable, shortened};
use maud::{Markup, html};
use serde_json::Value;

/// Names longer than this are shortened in the middle; their whole text is in the `title`.
const LONG: usize = 160;
/// Nothing longer is put into the page as text: the report inside of the page has it.
const LONGEST: usize = 2000;

/// The text as it may be shown.
pub(super) fn shown(text: &str) -> String {
    shortened(&printable(text), LONGEST)
}

/// A name or command of any length: shortened where it is long, with all of it on hover.
pub(super) fn long(text: &str) -> Markup {
    let whole = shown(text);
    let short = shortened(&whole, LONG);
    html! {
        @if short == whole { (whole) } @else { span title=(whole) { (short) } }
    }
}

/// The same without the rest on hover: for what occurs often in a page.
pub(super) fn brief(text: &str) -> String {
    shortened(&printable(text), LONG)
}

/// The JSON of a value whose long texts are cut, if it is longer than `most`: then it says so in a field `shortened`.
pub(super) fn bounded(json: String, most: usize) -> String {
    if json.len() <= most {
        return json;
    }
    let Ok(mut value) = serde_json::from_str::<Value>(&json) else { return json };
    cut(&mut value);
    if let Value::Object(fields) = &mut value {
        fields.insert("shortened".to_owned(), Value::Bool(true));
    }
    value.to_string()
}

fn cut(value: &mut Value) {
    match value {
        Value::String(text) => *text = shortened(text, LONG),
        Value::Array(values) => values.iter_mut().for_each(cut),
        Value::Object(fields) => fields.values_mut().for_each(cut),
        _ => {}
    }
}

/// JSON that may stand inside of a script element, and shows nothing that changes the writing direction.
pub(super) fn in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c if crate::render::page::is_printable(c) => out.push(c),
            c => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }
    out
}
