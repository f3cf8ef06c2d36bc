use super::*;

/// Creates an environment from `NAME=value` words.
fn environment(words: &str) -> impl Fn(&str) -> Option<String> + '_ {
    move |name| words.split(' ').find_map(|word| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
}

fn selected(name: Option<&str>, words: &str) -> Result<String, SelectionError> {
    Ok(match select(name, &environment(words))? {
        Selected::Offline => "offline".to_owned(),
        Selected::Provider(found) => {
            format!("{} {} ({}) at {}", found.provider, found.model, found.model_origin, found.base_url)
        }
    })
}

#[test]
fn the_first_configured_model_is_selected_or_else_the_offline_model() {
    for (words, expected) in [
        ("", "offline"),
        ("GROQ_API_KEY= OPENAI_MODEL=x", "offline"),
        ("OLLAMA_HOST=h", "ollama llama3.2 (built in) at http://h:11434/v1"),
        ("OLLAMA_HOST=h ANTHROPIC_API_KEY=k", "anthropic claude-sonnet-5-5 (built in) at https://api.anthropic.com/v1"),
        ("ANTHROPIC_API_KEY=k OPENAI_API_KEY=k", "openai gpt-5.4-mini (built in) at https://api.openai.com/v1"),
        ("OPENAI_API_KEY=k GROQ_API_KEY=k", "groq openai/gpt-oss-120b (built in) at https://api.groq.com/openai/v1"),
        ("GROQ_API_KEY=k GROQ_MODEL=q GROQ_BASE_URL=http://x/v1", "groq q (GROQ_MODEL) at http://x/v1"),
        (
            "OPENAI_API_KEY=k OPENAI_BASE_URL=https://api.openai.com/v1/ OPENAI_MODEL=m",
            "openai m (OPENAI_MODEL) at https://api.openai.com/v1/",
        ),
        (
            "OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_MODEL=m",
            "compatible m (OPENAI_MODEL) at http://127.0.0.1:8080/v1",
        ),
        ("GROQ_API_KEY=k THREADKEEP_MODEL=offline", "offline"),
        ("GROQ_API_KEY=k THREADKEEP_MODEL=groq:q", "groq q (THREADKEEP_MODEL) at https://api.groq.com/openai/v1"),
    ] {
        assert_eq!(selected(None, words).as_deref(), Ok(expected), "{words}");
    }
}

#[test]
fn a_name_overrides_the_environment() {
    let words = "GROQ_API_KEY=k ANTHROPIC_API_KEY=k THREADKEEP_MODEL=anthropic";
    for (name, expected) in [
        ("offline", "offline"),
        ("groq", "groq openai/gpt-oss-120b (built in) at https://api.groq.com/openai/v1"),
        ("groq:", "groq openai/gpt-oss-120b (built in) at https://api.groq.com/openai/v1"),
        ("anthropic:claude-x", "anthropic claude-x (the name) at https://api.anthropic.com/v1"),
        ("ollama:qwen3:8b", "ollama qwen3:8b (the name) at http://127.0.0.1:11434/v1"),
        ("qwen/qwen3-32b", "groq qwen/qwen3-32b (the name) at https://api.groq.com/openai/v1"),
        ("vendor/model:free", "groq vendor/model:free (the name) at https://api.groq.com/openai/v1"),
        (" ", "anthropic claude-sonnet-5-5 (built in) at https://api.anthropic.com/v1"),
    ] {
        assert_eq!(selected(Some(name), words).as_deref(), Ok(expected), "{name}");
    }
}

#[test]
fn errors_name_what_is_missing() {
    let missing = |provider, variable| Err(SelectionError::Missing { provider, variable });
    assert_eq!(selected(Some("groq"), ""), missing(Provider::Groq, "GROQ_API_KEY"));
    assert_eq!(selected(Some("openai:gpt-x"), ""), missing(Provider::OpenAi, "OPENAI_API_KEY"));
    assert_eq!(selected(Some("compatible:m"), ""), missing(Provider::Compatible, "OPENAI_BASE_URL"));
    assert_eq!(selected(None, "OPENAI_BASE_URL=http://x/v1"), missing(Provider::Compatible, "OPENAI_MODEL"));
    let unknown = |name: &str| Err(SelectionError::UnknownProvider(name.to_owned()));
    assert_eq!(selected(Some("gemini:pro"), ""), unknown("gemini:pro"));
    assert_eq!(selected(Some("gpt-x"), ""), unknown("gpt-x"));
    assert_eq!(selected(None, "GROQ_API_KEY=ké"), Err(SelectionError::Key("GROQ_API_KEY")));
}

#[test]
fn all_configured_models_are_found_in_order_of_preference() {
    let words = "OLLAMA_HOST=h ANTHROPIC_API_KEY=a OPENAI_API_KEY=o OPENAI_BASE_URL=http://x/v1 GROQ_API_KEY=g";
    let found = find_models(&environment(words));
    let descriptions: Vec<String> = found
        .iter()
        .map(|found| match found {
            Ok(found) => format!("{} {}", found.provider, found.key_variable.unwrap_or("-")),
            Err(error) => error.to_string(),
        })
        .collect();
    let expected = ["groq GROQ_API_KEY", "compatible needs OPENAI_MODEL", "anthropic ANTHROPIC_API_KEY", "ollama -"];
    assert_eq!(descriptions, expected);
    let debug = format!("{found:?}");
    assert!(!debug.contains("\"g\"") && debug.contains("Groq"), "{debug}");
}

#[test]
fn every_provider_has_its_variables() {
    for provider in Provider::ALL {
        assert_eq!(variables_of(provider, &|_| None).provider, provider);
    }
}

#[test]
fn ollamas_host_variable_becomes_a_base_url() {
    for (host, expected) in [
        ("127.0.0.1", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:5000", "http://127.0.0.1:5000/v1"),
        (":5000", "http://127.0.0.1:5000/v1"),
        ("http://box/", "http://box:11434/v1"),
        ("https://ollama.example.com", "https://ollama.example.com/v1"),
        ("http://box:1/v1", "http://box:1/v1"),
    ] {
        assert_eq!(ollama_address(host), expected, "{host}");
    }
}

#[test]
fn a_proxy_is_used_for_remote_providers_only() {
    let words = "GROQ_API_KEY=k OLLAMA_HOST=h HTTPS_PROXY=http://proxy:3128 NO_PROXY=example.com";
    let proxies: Vec<Option<String>> = find_models(&environment(words))
        .into_iter()
        .map(|found| found.unwrap().config(PriceTable::default()).http.proxy)
        .collect();
    assert_eq!(proxies, [Some("http://proxy:3128".to_owned()), None]);
}

#[test]
fn embedders_require_explicit_configuration() {
    let embedder = |name, words| {
        let config = select_embedder(name, &environment(words))?;
        Ok(config.map(|config| format!("{} at {}, {}", config.model, config.base_url, config.key.is_some())))
    };
    assert_eq!(embedder(None, "OPENAI_API_KEY=k"), Ok(None));
    let small = "text-embedding-3-small at https://api.openai.com/v1, true".to_owned();
    assert_eq!(embedder(Some("openai:text-embedding-3-small"), "OPENAI_API_KEY=k"), Ok(Some(small)));
    let nomic = "nomic-embed-text:v1.5 at http://127.0.0.1:11434/v1, false".to_owned();
    assert_eq!(embedder(None, "THREADKEEP_EMBEDDER=ollama:nomic-embed-text:v1.5"), Ok(Some(nomic)));
    assert_eq!(embedder(Some("groq:x"), ""), Err(SelectionError::NoEmbeddings(Provider::Groq)));
    assert!(matches!(embedder(Some("ollama"), ""), Err(SelectionError::Missing { .. })));
    assert!(matches!(embedder(Some("nomic"), ""), Err(SelectionError::UnknownProvider(_))));
}
