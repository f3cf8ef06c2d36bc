//! Resolves the answers of questions to ids of documents.
//!
//! An answer is the id of a document, a registro digital, or an article: `amparo:97` (its 0-based position in the
//! file), or the id or number of the article (`art-97`, `Artículo 97`) with the statute as `source` or before a colon.
//! Ids and numbers of articles repeat, so such an answer can stand for several articles.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::Value;

/// The articles of the statutes in a corpus.
#[derive(Debug, Default)]
pub(super) struct Articles {
    /// Positions by statute and name.
    by_name: HashMap<(String, String), Vec<usize>>,
    counts: HashMap<String, usize>,
}

#[derive(Deserialize)]
struct Statute {
    law_id: String,
    articles: Vec<Article>,
}

#[derive(Deserialize)]
struct Article {
    #[serde(default)]
    id: String,
    #[serde(default)]
    number: String,
}

impl Articles {
    /// Reads the statutes (`ley-*.json`, `ley-*.json.gz`) of files and folders.
    pub(super) fn read(paths: &[PathBuf]) -> Result<Self> {
        let mut articles = Self::default();
        for path in paths {
            if path.is_dir() {
                for entry in std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))? {
                    articles.add_file(&entry?.path())?;
                }
            } else {
                articles.add_file(path)?;
            }
        }
        Ok(articles)
    }

    fn add_file(&mut self, path: &Path) -> Result<()> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with("ley-") {
            return Ok(());
        }
        let mut text = String::new();
        let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        match name.ends_with(".gz") {
            true => GzDecoder::new(file).read_to_string(&mut text)?,
            false => { file }.read_to_string(&mut text)?,
        };
        let statute = serde_json::from_str(&text).with_context(|| format!("{} is not a statute", path.display()))?;
        self.add(&statute);
        Ok(())
    }

    fn add(&mut self, statute: &Statute) {
        self.counts.insert(statute.law_id.clone(), statute.articles.len());
        for (position, article) in statute.articles.iter().enumerate() {
            let names: BTreeSet<String> = [fold(&article.id), fold(&article.number)].into_iter().collect();
            for name in names {
                self.by_name.entry((statute.law_id.clone(), name)).or_default().push(position);
            }
        }
    }

    /// Returns the ids of the documents that an answer stands for.
    pub(super) fn resolve(&self, answer: &Value, source: Option<&str>) -> BTreeSet<String> {
        let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        let statute = |name: &str| {
            let name = name.rsplit('/').next().unwrap_or(name).trim().to_lowercase();
            let name = name.trim_start_matches("ley-").trim_start_matches("ley:").split('.').next()?.to_owned();
            self.counts.contains_key(&name).then_some(name)
        };
        let named = text.rsplit_once(':').and_then(|(law, rest)| Some((statute(law)?, rest.to_owned())));
        let by_source = || Some((statute(source?)?, text.clone()));
        let Some((law, article)) = named.or_else(by_source) else { return BTreeSet::from([text]) };
        let positions = match article.parse::<usize>() {
            Ok(position) if self.counts.get(&law).is_some_and(|count| position < *count) => vec![position],
            _ => self.by_name.get(&(law.clone(), fold(&article))).cloned().unwrap_or_default(),
        };
        positions.into_iter().map(|position| format!("{law}:{position}")).collect()
    }
}

fn fold(name: &str) -> String {
    name.trim().trim_end_matches('.').to_lowercase().replace("artículo", "articulo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_name_articles_by_position_id_or_number() {
        let article = |id: &str, number: &str| Article { id: id.to_owned(), number: number.to_owned() };
        let mut articles = Articles::default();
        let repeated =
            [article("art-1", "Artículo 1o"), article("art-2", "Artículo 2"), article("art-1", "Artículo 1o")];
        articles.add(&Statute { law_id: "amparo".to_owned(), articles: repeated.into() });
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
        for (answer, source, expected) in [
            (Value::from("amparo:1"), None, &["amparo:1"][..]),
            (Value::from("ley-amparo:art-2"), None, &["amparo:1"]),
            (Value::from(2), Some("ley-amparo.json.gz"), &["amparo:2"]),
            (Value::from("art-1"), Some("mx-legal/ley-amparo.json.gz"), &["amparo:0", "amparo:2"]),
            (Value::from("Artículo 2"), Some("amparo"), &["amparo:1"]),
            (Value::from("MX-SAT-2024-1-CFF-N"), Some("mx-sat-dof.jsonl"), &["MX-SAT-2024-1-CFF-N"]),
            (Value::from(2_031_567), None, &["2031567"]),
            (Value::from("amparo:art-99"), None, &[]),
        ] {
            assert_eq!(articles.resolve(&answer, source), ids(expected), "{answer} {source:?}");
        }
    }
}
