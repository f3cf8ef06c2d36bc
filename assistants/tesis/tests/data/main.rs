//! Tests with the data sets in the folder `THREADKEEP_DATA`: real statutes, decisions and claves, and dialogues.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod data_set;
#[allow(dead_code, reason = "these tests use only some of the helpers")]
#[path = "../dialogues/test_env.rs"]
mod test_env;

use std::path::PathBuf;

use serde_json::Value;
use test_env::{TestEnv, tenant};
use threadkeep_tesis::{ClaveKey, ImportRequest, References, SearchRequest};

fn data(path: &str) -> PathBuf {
    let folder = std::env::var_os("THREADKEEP_DATA")
        .expect("THREADKEEP_DATA must name the folder of the data sets; `cargo xtask test --data` sets it");
    PathBuf::from(folder).join(path)
}

fn read(path: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(data(path)).unwrap()).unwrap()
}

#[tokio::test]
async fn dialogues_of_the_development_set_pass() {
    let (count, wrong) = data_set::run_set(&read("dialogues/legal-dev.json")).await;
    assert_eq!((count, wrong), (27, Vec::<String>::new()));
}

// S3.54
#[test]
fn real_claves_are_found_in_all_spellings() {
    let cited = read("mx-legal/tesis-citadas.json");
    let mut claves: Vec<&str> = cited.as_array().unwrap().iter().filter_map(|tesis| tesis["clave"].as_str()).collect();
    claves.sort_unstable();
    claves.dedup();
    assert_eq!(claves.len(), 30);
    let mut keys: Vec<ClaveKey> = claves.iter().map(|clave| ClaveKey::of(clave)).collect();
    for (clave, key) in claves.iter().zip(&keys) {
        let spellings = [
            (*clave).to_owned(),
            clave.to_lowercase(),
            clave.to_uppercase(),
            clave.replace("./J. ", "./J.").replace("a. ", "a."),
            clave.replace("1a.", "1ª.").replace("2a.", "2ª.").replace("a.)", "ª.)"),
            clave.replace('/', " / "),
            clave.replace("a.)", "a)"),
            clave.replace("(10a.)", "(Décima Época)").replace("(11a.)", "(Undécima Época)"),
        ];
        for spelling in spellings {
            assert_eq!(ClaveKey::of(&spelling), *key, "{spelling}");
            let found = References::of(&format!("Busca la tesis {spelling}, por favor."));
            assert_eq!(found.claves, std::slice::from_ref(key), "{spelling}");
        }
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 30, "different claves have different keys");
}

#[tokio::test]
async fn real_files_are_imported_and_searched() {
    let env = TestEnv::with(&[], None, None).await;
    let (corpus, tenant) = (env.corpus(), tenant());
    let request = ImportRequest { tenant: &tenant, embedder: None, as_of: None, progress: &|_, _| {} };
    let files = ["ley-amparo.json.gz", "mx-sat-dof.jsonl", "scjn-sentencias-dev.jsonl", "tesis-semana-20260515.json"];
    let paths: Vec<PathBuf> = files.iter().map(|file| data("mx-legal").join(file)).collect();
    let report = corpus.import(&paths, &request).await.unwrap();
    assert_eq!((report.records, report.broken), (1 + 45 + 7 + 26, 0), "{report:?}");
    let again = corpus.import(&paths, &request).await.unwrap();
    assert_eq!((again.stored, again.unchanged), (0, report.stored + report.unchanged));
    assert_eq!(corpus.by_registro(&tenant, &[2_032_120]).await.unwrap().len(), 1);
    let query = "¿Cuál es el plazo para la interposición del recurso de queja?".to_owned();
    let found = corpus.search(&tenant, &SearchRequest { query, limit: 5, ..SearchRequest::default() }).await.unwrap();
    let titles: Vec<String> = found.iter().map(|found| found.item.title()).collect();
    assert!(titles.contains(&"Ley de Amparo, Artículo 98".to_owned()), "{titles:?}");
    let has_headers = found.iter().any(|found| found.item.text().contains("CÁMARA DE DIPUTADOS DEL H."));
    assert!(!has_headers, "page headers are removed");
}
