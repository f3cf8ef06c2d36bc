/// A network of lines and stations that a page can draw: where an assistant's answers take place.
///
/// The indexes in [`MapLine::patterns`] refer to [`NetworkMap::stations`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkMap {
    /// The stations, in no particular order.
    pub stations: Vec<MapStation>,
    /// The lines, in the order in which a list shows them.
    pub lines: Vec<MapLine>,
}

/// A station on a [`NetworkMap`].
#[derive(Clone, Debug, PartialEq)]
pub struct MapStation {
    /// The id, as in the results of the assistant's tools.
    pub id: String,
    /// The id of the complex. Stations of one complex are connected on foot.
    pub complex: String,
    /// The name, which need not be unique.
    pub name: String,
    /// The latitude in degrees north.
    pub latitude: f64,
    /// The longitude in degrees east.
    pub longitude: f64,
}

/// A line on a [`NetworkMap`].
#[derive(Clone, Debug, PartialEq)]
pub struct MapLine {
    /// The id.
    pub id: String,
    /// The name, as in the results of the assistant's tools. Several lines can share a name.
    pub name: String,
    /// The name in full, if the name alone is unclear, such as `S 42 St Shuttle`.
    pub full_name: Option<&'static str>,
    /// The colour, such as `#0039a6`.
    pub colour: &'static str,
    /// The indexes of the stations of each stopping pattern in order, the most usual pattern first. A pattern applies to both
    /// directions.
    pub patterns: Vec<Vec<usize>>,
}

/// Returns the map of an assistant.
pub type MapOf = fn() -> &'static NetworkMap;
