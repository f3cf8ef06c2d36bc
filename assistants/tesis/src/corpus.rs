//! The corpus: tesis, articles of statutes and passages of documents in a named collection of the tenant.

use serde::{Deserialize, Serialize};
use threadkeep::core::{
    Collection, Embedding, EntryHit, FieldFilter, IndexEntry, MetadataFilter, RecordOwner, RecordWrite, SearchQuery,
    StoreError,
};
use threadkeep::{JsonText, Map, Memory, Namespace, Scope, Timestamp, Value};

use crate::clave::ClaveKey;
use crate::record::{Tesis, Tipo, court_slug, materia_slug};

/// The name of the collection.
const COLLECTION: &str = "tesis";
/// The key of the record that describes the corpus.
const DESCRIPTION: &str = "corpus";
/// The field of a stored item that contains the length of its title. In the entry, the title precedes the text.
const TITLE_BYTES: &str = "title_bytes";
/// The maximum number of entries that a look-up by number or clave returns.
const LOOK_UP_LIMIT: usize = 50;
/// The maximum number of values in a filter.
const FILTER_VALUES: usize = 200;

/// An item of the corpus: the unit that searches find and answers cite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Item {
    /// A tesis.
    Tesis(Tesis),
    /// An article of a statute, or part of a long one.
    Article(Article),
    /// A passage of another document, such as a decision.
    Passage(Passage),
}

/// An article of a statute, or part of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Article {
    /// The id of the statute: `amparo`.
    pub law: String,
    /// Its name: `Ley de Amparo`.
    pub law_name: String,
    /// The number as printed: `Artículo 2o`.
    pub number: String,
    /// The position in the statute. It identifies the article, because numbers repeat.
    pub position: usize,
    /// The 1-based part of a long article; 0 for a whole article.
    pub part: usize,
    /// The text.
    pub text: String,
}

/// A passage of a document.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Passage {
    /// The id of the document.
    pub document: String,
    /// The title of the document.
    pub title: String,
    /// The position in the document: `párrafos 12-15`.
    pub place: String,
    /// The 0-based number of the passage.
    pub number: usize,
    /// The country, if it is not Mexico: `CR`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// The court or authority.
    pub court: Option<String>,
    /// The date of the document.
    pub date: Option<String>,
    /// The text.
    pub text: String,
}

impl Item {
    /// Returns the id in the corpus.
    #[must_use]
    pub fn key(&self) -> String {
        match self {
            Self::Tesis(tesis) => format!("tesis:{}", tesis.id_tesis),
            Self::Article(article) => format!("ley:{}:{}.{}", article.law, article.position, article.part),
            Self::Passage(passage) => format!("doc:{}:{}", passage.document, passage.number),
        }
    }

    /// Returns the title under which answers cite the item.
    #[must_use]
    pub fn title(&self) -> String {
        match self {
            Self::Tesis(tesis) => tesis.rubro.clone(),
            Self::Article(article) => format!("{}, {}", article.law_name, article.number),
            Self::Passage(passage) => format!("{}, {}", passage.title, passage.place),
        }
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Tesis(tesis) => &tesis.texto,
            Self::Article(article) => &article.text,
            Self::Passage(passage) => &passage.text,
        }
    }

    /// Returns the tesis; `None` for other items.
    #[must_use]
    pub fn tesis(&self) -> Option<&Tesis> {
        match self {
            Self::Tesis(tesis) => Some(tesis),
            _ => None,
        }
    }

    /// Returns the index entry. The hash in its fields is compared to detect unchanged items.
    pub(crate) fn to_entry(&self, embedding: Option<Embedding>) -> Result<IndexEntry, StoreError> {
        let mut value = serde_json::to_value(self).map_err(|_| StoreError::invalid("item", "not JSON"))?;
        let hash = hash(&value.to_string(), embedding.as_ref().map(|embedding| embedding.model.as_str()));
        let (title, text) = (self.title(), self.text().to_owned());
        // The text is stored once, in the entry.
        if let Some(value) = value.as_object_mut() {
            value.remove("texto");
            value.remove("text");
            value.insert(TITLE_BYTES.to_owned(), title.len().into());
        }
        let mut fields = Map::new();
        fields.insert("key".to_owned(), short(&self.key()).into());
        fields.insert("hash".to_owned(), hash.into());
        if let Self::Tesis(tesis) = self {
            fields.insert("id_tesis".to_owned(), tesis.id_tesis.into());
            if let Some(clave) = &tesis.clave {
                fields.insert("clave".to_owned(), short(&ClaveKey::of(clave).key).into());
            }
            fields.extend(tesis.epoca.map(|epoca| ("epoca".to_owned(), epoca.into())));
            fields.extend(tesis.anio.map(|anio| ("anio".to_owned(), anio.into())));
            fields.extend(tesis.tipo.map(|tipo| ("tipo".to_owned(), tipo.name().into())));
            fields.extend(tesis.instancia.as_ref().map(|court| ("instancia".to_owned(), court_slug(court).into())));
            let materias: Vec<Value> = tesis.materias.iter().map(|materia| materia_slug(materia).into()).collect();
            fields.insert("materias".to_owned(), materias.into());
        }
        fields.insert("item".to_owned(), value);
        Ok(IndexEntry { id: self.key(), text: format!("{title}\n{text}"), fields, embedding })
    }

    fn from_hit(hit: &EntryHit) -> Option<Self> {
        let mut value = hit.fields.get("item")?.clone();
        let object = value.as_object_mut()?;
        let title_bytes = usize::try_from(object.remove(TITLE_BYTES)?.as_u64()?).ok()?;
        let text = hit.text.get(title_bytes + 1..)?;
        let name = if object.get("kind")?.as_str() == Some("tesis") { "texto" } else { "text" };
        object.insert(name.to_owned(), text.into());
        serde_json::from_value(value).ok()
    }
}

/// Returns a value that is short enough for filters: a long value is replaced by its hash.
fn short(value: &str) -> String {
    if value.len() <= 60 { value.to_owned() } else { hash(value, None) }
}

/// Returns the 64-bit FNV-1a hash of the text in hexadecimal. It is stored, so it must never change.
fn hash(text: &str, model: Option<&str>) -> String {
    let bytes = text.bytes().chain([0]).chain(model.unwrap_or_default().bytes());
    let hash = bytes
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

/// What the corpus contains, and as of when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusDescription {
    /// The day as of which the corpus is complete, as stated by the person who imported it, or the day of the last import.
    pub as_of: String,
    /// The number of items stored by all imports, including those that were replaced later.
    pub imported: u64,
}

/// An entry that the index returned for a search.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hit {
    pub(crate) item: Item,
    pub(crate) similarity: Option<f64>,
    pub(crate) has_terms: bool,
}

/// The candidates of a search, with the statistics for ranking them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidates {
    pub(crate) hits: Vec<Hit>,
    pub(crate) documents: u64,
    pub(crate) frequencies: Vec<u64>,
}

/// The corpus in a memory.
#[derive(Clone, Debug)]
pub struct Corpus {
    memory: Memory,
}

impl Corpus {
    /// Returns the corpus in the store of a memory.
    #[must_use]
    pub fn new(memory: &Memory) -> Self {
        Self { memory: memory.clone() }
    }

    /// Adds items to the tenant's corpus, replacing those with the same key. Returns how many were new or changed.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn put(&self, tenant: &Scope, items: &[(Item, Option<Embedding>)]) -> Result<usize, StoreError> {
        let mut changed = 0;
        for items in items.chunks(FILTER_VALUES) {
            let entries: Vec<IndexEntry> =
                items.iter().map(|(item, embedding)| item.to_entry(embedding.clone())).collect::<Result<_, _>>()?;
            let known = self.known(tenant, &entries).await?;
            let new: Vec<IndexEntry> = entries
                .into_iter()
                .filter(|entry| !known.contains(&(entry.id.clone(), hash_of(&entry.fields))))
                .collect();
            changed += new.len();
            if !new.is_empty() {
                self.memory.backend().search.upsert(tenant, &collection(), new).await?;
            }
        }
        Ok(changed)
    }

    /// Returns the ids and hashes of the entries that are already stored and have not changed.
    async fn known(&self, tenant: &Scope, entries: &[IndexEntry]) -> Result<Vec<(String, String)>, StoreError> {
        let filter = FieldFilter::any("hash", entries.iter().map(|entry| hash_of(&entry.fields)));
        let answer = self.find(tenant, Vec::new(), None, vec![filter], 1_000).await?;
        Ok(answer.entries.iter().map(|hit| (hit.id.clone(), hash_of(&hit.fields))).collect())
    }

    /// Finds tesis by registro digital.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn by_registro(&self, scope: &Scope, registros: &[i64]) -> Result<Vec<Item>, StoreError> {
        let filter = FieldFilter::any("id_tesis", registros.iter().copied().take(FILTER_VALUES));
        let found = self.filtered(scope, filter).await?;
        let number = |item: &Item| item.tesis().map(|tesis| tesis.id_tesis);
        let position = |item: &Item| registros.iter().position(|registro| Some(*registro) == number(item));
        Ok(sorted(found, position))
    }

    /// Finds tesis by clave. A clave without its época finds the tesis of every época.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn by_clave(&self, scope: &Scope, claves: &[ClaveKey]) -> Result<Vec<Item>, StoreError> {
        let filter = FieldFilter::any(
            "clave",
            claves.iter().flat_map(ClaveKey::stored_keys).map(|key| short(&key)).take(FILTER_VALUES),
        );
        let found = self.filtered(scope, filter).await?;
        let is_same = |item: &Item, clave: &ClaveKey| {
            let Some(tesis) = item.tesis() else { return false };
            let own = ClaveKey::of(tesis.clave.as_deref().unwrap_or_default());
            clave.refers_to(&ClaveKey { epoca: own.epoca.or(tesis.epoca), ..own })
        };
        let position = |item: &Item| claves.iter().position(|clave| is_same(item, clave));
        Ok(sorted(found, position))
    }

    /// Finds items by their keys, in the order of the keys.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn by_key(&self, scope: &Scope, keys: &[String]) -> Result<Vec<Item>, StoreError> {
        let filter = FieldFilter::any("key", keys.iter().map(|key| short(key)).take(FILTER_VALUES));
        let found = self.filtered(scope, filter).await?;
        Ok(sorted(found, |item| keys.iter().position(|key| *key == item.key())))
    }

    async fn filtered(&self, scope: &Scope, filter: FieldFilter) -> Result<Vec<Item>, StoreError> {
        if filter.values.is_empty() {
            return Ok(Vec::new());
        }
        let answer = self.find(scope, Vec::new(), None, vec![filter], LOOK_UP_LIMIT).await?;
        Ok(answer.entries.iter().filter_map(Item::from_hit).collect())
    }

    pub(crate) async fn candidates(
        &self,
        scope: &Scope,
        terms: Vec<String>,
        vector: Option<Embedding>,
        filters: Vec<FieldFilter>,
        limit: usize,
    ) -> Result<Candidates, StoreError> {
        if terms.is_empty() && vector.is_none() && filters.is_empty() {
            return Ok(Candidates::default());
        }
        let indexed: std::collections::HashSet<String> = terms.iter().cloned().collect();
        let answer = self.find(scope, terms, vector, filters, limit).await?;
        let hits = answer.entries.iter().filter_map(|hit| {
            let has_terms =
                || threadkeep::core::text::indexed_terms(&hit.text).iter().any(|term| indexed.contains(term));
            let has_terms = hit.similarity.is_none() || has_terms();
            Some(Hit { item: Item::from_hit(hit)?, similarity: hit.similarity, has_terms })
        });
        Ok(Candidates { hits: hits.collect(), documents: answer.documents, frequencies: answer.frequencies.clone() })
    }

    /// Returns the keys of the items that are nearest to a vector, nearest first.
    pub(crate) async fn nearest(
        &self,
        scope: &Scope,
        vector: Embedding,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        let answer = self.find(scope, Vec::new(), Some(vector), Vec::new(), limit).await?;
        let mut hits: Vec<&EntryHit> = answer.entries.iter().filter(|hit| hit.similarity.is_some()).collect();
        hits.sort_by(|a, b| b.similarity.partial_cmp(&a.similarity).unwrap_or(std::cmp::Ordering::Equal));
        Ok(hits.into_iter().map(|hit| hit.id.clone()).collect())
    }

    async fn find(
        &self,
        scope: &Scope,
        terms: Vec<String>,
        vector: Option<Embedding>,
        filters: Vec<FieldFilter>,
        limit: usize,
    ) -> Result<threadkeep::core::SearchAnswer, StoreError> {
        let query = SearchQuery {
            collection: collection(),
            terms,
            alternatives: Vec::new(),
            vector,
            filters,
            metadata: MetadataFilter::default(),
            thread: None,
            limit,
            reads_messages: false,
        };
        self.memory.backend().search.search(scope, &query, self.memory.now()).await
    }

    /// Returns what the tenant's corpus contains; `None` before the first import.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn description(&self, scope: &Scope) -> Result<Option<CorpusDescription>, StoreError> {
        let tenant = Scope::Tenant(scope.tenant_id().clone());
        let (owner, now) = (RecordOwner::Tenant, self.memory.now());
        let found = self.memory.backend().store.find_record(&tenant, &owner, &namespace()?, DESCRIPTION, now).await?;
        found.map(|record| record.value.read()).transpose()
    }

    /// Records what was imported.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn describe(&self, tenant: &Scope, description: &CorpusDescription) -> Result<(), StoreError> {
        let write = RecordWrite {
            owner: RecordOwner::Tenant,
            namespace: namespace()?,
            key: DESCRIPTION.to_owned(),
            expected: None,
            value: Some(JsonText::of(description)?),
            expires_at: None,
        };
        self.memory.backend().store.write_record(tenant, write, self.memory.now()).await.map(drop)
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.memory.now()
    }
}

/// Returns the items that have a position, ordered by it.
fn sorted(items: Vec<Item>, position: impl Fn(&Item) -> Option<usize>) -> Vec<Item> {
    let mut found: Vec<(usize, Item)> = items.into_iter().filter_map(|item| Some((position(&item)?, item))).collect();
    found.sort_by_key(|(position, item)| (*position, std::cmp::Reverse(item.tesis().and_then(|tesis| tesis.epoca))));
    found.into_iter().map(|(_, item)| item).collect()
}

fn hash_of(fields: &Map) -> String {
    fields.get("hash").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn collection() -> Collection {
    Collection::Named(COLLECTION.to_owned())
}

fn namespace() -> Result<Namespace, StoreError> {
    Namespace::app(COLLECTION)
}

/// Describes, in Spanish, whether a tesis is binding.
pub(crate) fn force(tesis: &Tesis) -> &'static str {
    match (tesis.epoca, tesis.tipo) {
        (Some(1..=4), _) => "histórica, no aplicable",
        (_, Some(Tipo::Jurisprudencia)) => "obligatoria",
        (_, Some(Tipo::Aislada)) => "orientadora, no obligatoria",
        (_, None) => "fuerza desconocida",
    }
}
