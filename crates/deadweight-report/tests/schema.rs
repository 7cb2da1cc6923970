//! The JSON Schema describes what reports contain: every field of a printed report is in it, and every field that it
//! requires is in the report.

use deadweight_report::report::json_schema;
use serde_json::Value;

/// Resolves `$ref`, and the one of several forms that is not null.
fn resolved<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    if let Some(path) = schema["$ref"].as_str() {
        return resolved(
            root,
            root.pointer(path.trim_start_matches('#')).expect("the reference exists"),
        );
    }
    let forms = schema["anyOf"].as_array().into_iter().flatten();
    let mut filled = forms.filter(|form| form["type"] != "null");
    filled.next().map_or(schema, |form| resolved(root, form))
}

/// The differences between a value and its schema, by path.
fn compare(root: &Value, schema: &Value, value: &Value, path: &str, wrong: &mut Vec<String>) {
    let schema = resolved(root, schema);
    match value {
        Value::Object(fields) => {
            let known = schema["properties"].as_object();
            for (name, value) in fields {
                match known.and_then(|known| known.get(name)) {
                    Some(inner) => compare(root, inner, value, &format!("{path}/{name}"), wrong),
                    None => wrong.push(format!("{path}/{name} is not in the schema")),
                }
            }
            let required =
                schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let missing = required.filter(|name| !fields.contains_key(*name));
            wrong.extend(missing.map(|name| format!("{path}/{name} is required")));
        }
        Value::Array(items) => {
            for item in items {
                compare(root, &schema["items"], item, path, wrong);
            }
        }
        _ => {}
    }
}

fn wrong(report: &Value) -> Vec<String> {
    let (schema, mut wrong) = (json_schema(), Vec::new());
    compare(&schema, &schema, report, "", &mut wrong);
    wrong
}

#[test]
fn the_examples_of_the_documentation_fit_the_schema_and_others_do_not() {
    for text in [
        include_str!("../../../docs/example/count-bytes.json"),
        include_str!("../../../docs/example/pipeline.json"),
    ] {
        let mut report: Value = serde_json::from_str(text).expect("our own JSON");
        assert_eq!(wrong(&report), [""; 0]);
        report["findings"] = serde_json::json!([{ "class": "gc", "shape": 1 }]);
        let said = wrong(&report);
        assert!(said.contains(&"/findings/shape is not in the schema".to_owned()), "{said:?}");
        assert!(said.contains(&"/findings/title is required".to_owned()), "{said:?}");
    }
}

#[test]
fn every_field_is_described() {
    let schema = json_schema();
    let types = schema["$defs"].as_object().expect("types").values().chain([&schema]);
    let fields = types.filter_map(|of| of["properties"].as_object()).flatten();
    let bare: Vec<&str> = fields
        .filter(|(_, field)| field["description"].is_null())
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(bare, [""; 0]);
}
