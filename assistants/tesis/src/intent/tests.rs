use super::*;

fn user(text: &str) -> PastMessage {
    PastMessage { is_user: true, text: text.to_owned(), ..PastMessage::default() }
}

fn answer(text: &str, sources: &[&str]) -> PastMessage {
    PastMessage {
        text: text.to_owned(),
        sources: sources.iter().map(|source| (*source).to_owned()).collect(),
        registros: vec![2_011_231],
        ..PastMessage::default()
    }
}

fn amparo() -> Vec<PastMessage> {
    vec![
        user("¿Qué es el amparo indirecto?"),
        answer(
            "El amparo indirecto se promueve ante un Juzgado de Distrito contra actos que no son sentencias definitivas.",
            &["AMPARO INDIRECTO. PROCEDE CONTRA ACTOS FUERA DE JUICIO.", "AMPARO INDIRECTO. PLAZO PARA PROMOVERLO."],
        ),
    ]
}

// S3.11, S3.12, S3.13, S3.15
#[test]
fn phrases_are_classified_as_labelled() {
    let reuse = [
        "explica más",
        "por qué",
        "¿por qué?",
        "dame detalles",
        "Dame más detalles",
        "¿Puedes explicarme eso?",
        "amplía la información",
        "Quiero más información sobre eso",
        "dame mas informacion",
        "profundiza",
        "detalla",
        "¿qué quiere decir eso?",
        "¿cómo es eso?",
        "no me quedó claro",
        "¿me lo puedes resumir?",
        "dame un ejemplo",
        "¿cuál es la más importante de esas?",
        "¿qué dice la primera tesis?",
        "¿y la segunda?",
        "explica la tercera tesis que citaste",
        "¿qué sala la emitió?",
        "¿de qué año es?",
        "¿cuál es su registro?",
        "¿es jurisprudencia o aislada?",
        "¿es obligatoria para los jueces locales?",
        "¿cuáles son los precedentes de esa tesis?",
        "¿en qué se diferencian las dos?",
        "aclara eso por favor",
        "repítelo con otras palabras",
        "¿qué más puedes decirme de ese criterio?",
        "entonces, ¿qué debo alegar con base en eso?",
        "¿y eso por qué?",
        "más",
        "continúa",
    ];
    let search = [
        "busca jurisprudencia sobre suspensión",
        "Busca sobre suspensión",
        "encuentra tesis de interés superior del menor",
        "dame más tesis",
        "Dame otra tesis",
        "Necesito tesis diferentes",
        "quiero otros criterios",
        "busca mas",
        "búscame algo de la Novena Época",
        "busca jurisprudencia reciente",
        "¿tienes más jurisprudencia?",
        "muéstrame otra",
        "localiza el registro 2031567",
        "consulta criterios sobre caducidad",
        "hay alguna tesis sobre arraigo?",
        "¿qué es la prescripción?",
        "¿Cómo se tramita el divorcio incausado?",
        "¿Qué dice la jurisprudencia sobre daño moral?",
        "y sobre despido injustificado?",
        "ahora háblame de pensión alimenticia",
        "otra pregunta: ¿cuándo prescribe un pagaré?",
        "¿Por qué se niega la suspensión en materia fiscal?",
        "Explica la figura de la usucapión",
        "busca y explica más sobre legítima defensa",
        "dame detalles de la cadena de custodia",
        "y en materia penal?",
        "¿procede también contra particulares?",
        "¿y en la Décima Época?",
        "sólo jurisprudencia, no aisladas",
        "la misma pregunta pero para amparo directo",
    ];
    let tolerant_reuse = ["¿y si es municipal?", "¿cuál es el plazo?", "¿hay excepciones?"];
    let none = ["ok gracias", "sí", "gracias", "Perfecto, muchas gracias", "hola", "muy amable, hasta luego"];
    let all = reuse.iter().chain(&tolerant_reuse).map(|text| (text, Intent::Reuse));
    let all = all
        .chain(search.iter().map(|text| (text, Intent::NewSearch)))
        .chain(none.iter().map(|text| (text, Intent::None)));
    let wrong: Vec<String> = all
        .filter_map(|(text, expected)| {
            let found = classify(text, &amparo());
            (found.intent != expected).then(|| format!("{text}: {:?} ({})", found.intent, found.reason))
        })
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

// S3.14
#[test]
fn without_sources_everything_is_a_new_search() {
    for text in ["¿Qué es el amparo indirecto?", "explica más"] {
        assert_eq!(classify(text, &[]).intent, Intent::NewSearch, "{text}");
    }
    let unanswered = [user("tesis sobre minería lunar"), answer("No encontré tesis.", &[])];
    assert_eq!(classify("por qué", &unanswered).intent, Intent::NewSearch);
    assert!(!classify_intent_simple("por qué", &unanswered));
    let mut earlier = amparo();
    earlier.extend(unanswered);
    assert_eq!(classify("por qué", &earlier).intent, Intent::NewSearch);
    assert_eq!(classify("explica más la última", &earlier).intent, Intent::Reuse);
}

// S3.15
#[test]
fn case_accents_and_punctuation_do_not_matter() {
    for (text, expected) in [
        ("EXPLICA MAS", Intent::Reuse),
        ("explica mas!!", Intent::Reuse),
        ("BUSCA TESIS SOBRE FACTURAS", Intent::NewSearch),
        ("buscame jurisprudencia de alimentos", Intent::NewSearch),
        ("¿¿por que??", Intent::Reuse),
    ] {
        assert_eq!(classify(text, &amparo()).intent, expected, "{text}");
    }
}

#[test]
fn thanks_do_not_end_the_topic() {
    let mut history = amparo();
    history.extend([user("gracias"), answer("De nada.", &[])]);
    assert_eq!(classify("explica más", &history).intent, Intent::Reuse);
}

// S3.11, S3.55
#[test]
fn requests_that_are_no_research_ask_for_nothing() {
    for text in [
        "¿me escribes un poema sobre jueces?",
        "oye, ¿cuánto es 144 entre 12?",
        "¿qué abogado me recomiendas?",
        "recomiéndame un hotel cerca del juzgado",
        "invéntame una tesis que diga que sí",
        "pues invéntala",
        "Quedo en deuda con usted, licenciada.",
        "Reciba un cordial saludo y mis agradecimientos",
        "un abrazo y gracias",
    ] {
        let found = classify(text, &amparo());
        assert_eq!(found.intent, Intent::None, "{text}: {}", found.reason);
    }
    for text in ["¿qué recurso me recomiendas?", "gracias, ¿y la segunda?", "dame la clave de la primera"] {
        assert_ne!(classify(text, &amparo()).intent, Intent::None, "{text}");
    }
}

// S3.12, S3.13
#[test]
fn a_subject_before_a_colon_or_after_a_rejection_is_a_new_search() {
    for (text, expected) in [
        ("usucapión: qué se necesita y quién la resuelve", Intent::NewSearch),
        ("mejor no uso esa. Pensión alimenticia de menores", Intent::NewSearch),
        ("quiero saber del despido injustificado, eso es lo que busco", Intent::NewSearch),
        ("una duda de la segunda: ¿obliga?", Intent::Reuse),
        ("entonces, si ya pasaron los tres años, ¿ya no?", Intent::Reuse),
        ("¿esa última es jurisprudencia o nomás aislada?", Intent::Reuse),
        ("esa es aislada, ¿no?", Intent::Reuse),
        ("descarta las aisladas", Intent::NewSearch),
    ] {
        let found = classify(text, &amparo());
        assert_eq!(found.intent, expected, "{text}: {}", found.reason);
    }
}

// S3.54
#[test]
fn a_registro_is_reused_only_if_it_was_cited() {
    assert_eq!(classify("pásame el texto completo de la 2011231", &amparo()).intent, Intent::Reuse);
    assert_eq!(classify("pásame el texto completo de la 2031567", &amparo()).intent, Intent::NewSearch);
}

#[test]
fn other_sources_are_recognised() {
    for text in [
        "dame otra tesis distinta",
        "¿hay más criterios?",
        "quiero ver otras",
        "otra más",
        "todavía otra, si hay",
        "criterios distintos, por favor",
    ] {
        let found = classify(text, &amparo());
        assert_eq!((found.intent, found.wants_more), (Intent::NewSearch, true), "{text}");
    }
    assert!(!classify("repítelo de otra forma", &amparo()).wants_more);
}

/// Phrases that were written without sight of the code, and classified once before anyone read their failures.
#[test]
fn blind_phrases_keep_passing() {
    let sets = [
        (include_str!("../../tests/sets/intents-1.json"), 244),
        (include_str!("../../tests/sets/intents-2.json"), 250),
    ];
    for (set, least) in sets {
        let (passed, wrong) = label_set(set);
        assert!(passed >= least, "{passed} strict phrases\n{}", wrong.join("\n"));
    }
}

/// The phrases in `THREADKEEP_INTENTS`, for measuring a new set: prints its report.
#[test]
fn phrases_of_a_given_set_are_reported() {
    let Some(path) = std::env::var_os("THREADKEEP_INTENTS") else { return };
    let set = std::fs::read_to_string(path).unwrap();
    let (passed, wrong) = label_set(&set);
    println!("{passed} of {} strict phrases\n{}", passed + wrong.len(), wrong.join("\n"));
}

/// Classifies the strict phrases of a set. Returns how many get the expected label, and a description of the others.
fn label_set(set: &str) -> (usize, Vec<String>) {
    let set: Vec<serde_json::Value> = serde_json::from_str(set).unwrap();
    let strict: Vec<_> = set.iter().filter(|phrase| phrase["strict"] == true).collect();
    let wrong: Vec<String> = strict
        .iter()
        .filter_map(|phrase| {
            let text = phrase["text"].as_str().unwrap();
            let found = classify(text, &crate::commands::history_of(&phrase["history"]));
            let (expected, label) = (phrase["label"].as_str().unwrap(), found.intent.label());
            (label != expected).then(|| format!("{expected}: {label} ({}) {text}", found.reason))
        })
        .collect();
    (strict.len() - wrong.len(), wrong)
}
