use super::*;

fn spec(memory: &str) -> Result<MemorySpec, String> {
    let text = format!("spec:\n  memory: {memory}\n");
    Manifest::from_yaml(&text, "x").map(|manifest| manifest.memory).map_err(|error| error.to_string())
}

// S4.38, S4.39
#[test]
fn memory_settings_have_defaults() {
    let defaults = MemorySpec {
        enabled: true,
        backend: None,
        max_messages: 20,
        context_window: 10,
        ttl_minutes: 60,
        store_user: StoreUserMessage::BeforeModelCall,
    };
    assert_eq!(Manifest::from_yaml("spec: {}", "x").unwrap().memory, defaults);
    assert_eq!(spec("{}").unwrap(), defaults);
    assert_eq!(
        spec("{max_messages: 4}").unwrap(),
        MemorySpec { max_messages: 4, context_window: 4, ..defaults.clone() }
    );
    let all =
        "{enabled: false, backend: redis, max_messages: 7, context_window: 7, ttl_minutes: 1, store_user: with_answer}";
    let expected = MemorySpec {
        enabled: false,
        backend: Some(MemoryBackend::Redis),
        max_messages: 7,
        context_window: 7,
        ttl_minutes: 1,
        store_user: StoreUserMessage::WithAnswer,
    };
    assert_eq!(spec(all).unwrap(), expected);
}

// S4.38
#[test]
fn errors_contain_key_and_line() {
    for (memory, expected) in [
        ("{max_messages: 0}", "spec.memory.max_messages: expected an integer from 1 to 1000000, found 0"),
        ("{max_messages: lots}", "spec.memory.max_messages: expected an integer from 1 to 1000000, found \"lots\""),
        ("{max_messages: 2.5}", "spec.memory.max_messages: expected an integer from 1 to 1000000, found 2.5"),
        ("{context_window: -1}", "spec.memory.context_window: expected an integer from 1 to 1000, found -1"),
        ("{context_window: 21}", "spec.memory.context_window: 21 is greater than max_messages, which is 20"),
        ("{ttl_minutes: 0}", "spec.memory.ttl_minutes: expected an integer from 1 to 4294967295, found 0"),
        (
            "{backend: dynamo}",
            "spec.memory.backend: unknown backend `dynamo`; expected inmemory, sqlite, postgres or redis",
        ),
        ("{store_user: never}", "spec.memory.store_user: unknown value `never`; expected first or with_answer"),
        ("{enabled: maybe}", "spec.memory.enabled: expected true or false, found \"maybe\""),
    ] {
        assert_eq!(spec(memory).unwrap_err(), format!("line 2: {expected}"), "{memory}");
    }
    let error = spec("{max_mesages: 3}").unwrap_err();
    assert!(error.starts_with("line 2: ") && error.contains("max_mesages"), "{error}");
    let error = Manifest::from_yaml("spec:\n  tools:\n    - recall\n    - rm\n", "x").unwrap_err();
    assert_eq!((error.line, error.key.as_str()), (4, "spec.tools"));
    let error = Manifest::from_yaml("metadata: {name: x}\n", "x").unwrap_err().to_string();
    assert!(error.contains("spec"), "{error}");
    let error = Manifest::from_yaml("kind: Fleet\nspec: {}\n", "x").unwrap_err();
    assert_eq!((error.line, error.key.as_str()), (1, "kind"));
    assert!(Manifest::from_yaml("spec: [", "x").is_err());
    let error = Manifest::from_yaml("spec:\n  tools: [recall\n  model: x\n", "x").unwrap_err();
    assert_eq!((error.line, error.reason.contains("line")), (3, false), "{error}");
    assert!(Manifest::from_yaml(&"a".repeat(300_000), "x").is_err());
}

#[test]
fn a_tool_can_require_approval() {
    let read = |tools: &str| Manifest::from_yaml(&format!("spec:\n  tools: {tools}\n"), "x");
    let manifest = read("[recall, {name: set_preference, approval: ask}, {name: list_preferences, approval: never}]");
    let manifest = manifest.unwrap();
    assert_eq!(manifest.tools.unwrap(), ["recall", "set_preference", "list_preferences"]);
    assert_eq!(manifest.requiring_approval, ["set_preference"]);
    for (tools, expected) in [
        ("[{name: rm, approval: ask}]", "unknown tool `rm`; available tools are "),
        (
            "[{name: recall, approval: maybe}]",
            "invalid value `maybe` of `approval` for tool `recall`; expected `ask` or `never`",
        ),
        (
            "[{name: recall, approval: [ask]}]",
            "invalid value [\"ask\"] of `approval` for tool `recall`; expected `ask` or `never`",
        ),
        ("[{name: recall, aproval: ask}]", "unknown key `aproval`; expected `name` or `approval`"),
        ("[{approval: ask}]", "expected the name of a tool, found null"),
        ("[7]", "expected the name of a tool, found 7"),
    ] {
        let error = read(tools).unwrap_err();
        assert_eq!((error.line, error.key.as_str()), (2, "spec.tools"), "{tools}");
        assert!(error.reason.starts_with(expected), "{tools}: {}", error.reason);
    }
}

#[test]
fn malicious_yaml_is_an_error() {
    let mut bomb = "a0: &a0 [x, x]\n".to_owned();
    for level in 1..30 {
        let below = level - 1;
        bomb.push_str(&format!("a{level}: &a{level} [*a{below}, *a{below}]\n"));
    }
    assert!(Manifest::from_yaml(&bomb, "x").is_err());
    assert!(Manifest::from_yaml(&format!("spec: {}", "[".repeat(100_000)), "x").is_err());
}
