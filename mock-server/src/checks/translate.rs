//! From the schemas of OpenAPI 3.0 to JSON Schema 2020-12: `nullable`, exclusive bounds that are yes or no, and references.

use serde_json::{Map, Value, json};

/// Translates named schemas, to stand under `$defs`.
pub fn definitions(schemas: &Value) -> Value {
    map_of_schemas(schemas)
}

/// Translates one schema; references lead to `$defs`.
pub fn schema(given: &Value) -> Value {
    let Some(fields) = given.as_object() else { return given.clone() };
    if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
        // In 3.0, whatever stands beside a reference is ignored.
        return json!({"$ref": target.replace("#/components/schemas/", "#/$defs/")});
    }
    let mut translated = Map::new();
    for (name, value) in fields {
        let value = match name.as_str() {
            "nullable" | "example" | "discriminator" | "default" | "xml" => continue,
            "properties" => map_of_schemas(value),
            "items" | "not" | "additionalProperties" => schema(value),
            "allOf" | "anyOf" | "oneOf" => value.as_array().into_iter().flatten().map(schema).collect(),
            _ => value.clone(),
        };
        translated.insert(name.clone(), value);
    }
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        if let Some(Value::Bool(is_exclusive)) = translated.get(exclusive).cloned() {
            translated.remove(exclusive);
            if is_exclusive && let Some(limit) = translated.remove(bound) {
                translated.insert(exclusive.to_owned(), limit);
            }
        }
    }
    match fields.get("nullable") {
        Some(Value::Bool(true)) => json!({"anyOf": [translated, {"type": "null"}]}),
        _ => translated.into(),
    }
}

fn map_of_schemas(given: &Value) -> Value {
    given.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), schema(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_translation_keeps_what_the_older_dialect_says() {
        let given = json!({
            "type": "object",
            "properties": {
                "nullable": {"type": "string", "nullable": true, "enum": ["a"]},
                "above": {"type": "integer", "minimum": 0, "exclusiveMinimum": true},
                "upto": {"type": "integer", "maximum": 5, "exclusiveMaximum": false},
                "other": {"$ref": "#/components/schemas/Other", "nullable": true},
                "maybe": {"nullable": true, "allOf": [{"$ref": "#/components/schemas/Other"}]},
            },
        });
        let mut translated = schema(&given);
        translated["$defs"] = definitions(&json!({"Other": {"type": "boolean"}}));
        let validator = jsonschema::draft202012::new(&translated).unwrap();
        for (value, fits) in [
            (json!({"nullable": null}), true),
            (json!({"nullable": "a"}), true),
            (json!({"nullable": "b"}), false),
            (json!({"above": 1}), true),
            (json!({"above": 0}), false),
            (json!({"upto": 5}), true),
            (json!({"upto": 6}), false),
            (json!({"other": true}), true),
            (json!({"other": null}), false),
            (json!({"maybe": null}), true),
            (json!({"maybe": true}), true),
            (json!({"maybe": 1}), false),
        ] {
            assert_eq!(validator.is_valid(&value), fits, "{value}");
        }
    }
}
