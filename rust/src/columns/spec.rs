//! The columns of a table, and the rules that make them.
//!
//! A text describes a table, one column a line: its name, its type, a rule, and what the rule needs. A path is keys with dots between. A path
//! that begins with `*.` is in a content block.
//!
//! ```text
//! !where assistant user                     only lines of these types have rows
//! !need message.usage                       only lines in which this is an object
//! !each message.content attachment.prompt   a row for each object in the first of these lists, or for the string that is there instead
//! path text path                            the name of the file
//! offset int offset                         bytes of the file before the line
//! block int index                           which of the rows of its line it is, from 0
//! source text if stream session_id          the word before the first of the paths that is there
//! session_id text first sessionId session_id   the first of the paths that has a value
//! block_type text kind *.type               the same, and `text` for a string that stands instead of a list
//! text text joined message.content content  the first that has a value: a string, or the texts of the objects of type `text` in a list
//! ```

use super::batch::Type;
use super::tree::{Slot, Tree};

/// Where a column takes its value from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A path in the line.
    Line(Slot),
    /// A path in a content block of the line.
    Block(Slot),
}

/// The rule of a column. See the module.
#[allow(missing_docs)]
#[derive(Debug)]
pub enum Rule {
    Path,
    Offset,
    Index,
    If(Vec<(Vec<u8>, Slot)>),
    First(Vec<Origin>),
    Kind(Vec<Origin>),
    Joined(Vec<Origin>),
}

/// A column.
#[derive(Debug)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: Type,
    /// How they are made.
    pub rule: Rule,
}

/// A table.
#[derive(Debug)]
pub struct Spec {
    /// Its columns.
    pub columns: Vec<Column>,
    /// The wanted keys of a line.
    pub line: Tree,
    /// The wanted keys of a content block.
    pub block: Tree,
    /// The type of the line.
    pub tag: Slot,
    /// The types of lines that have rows; empty for all.
    pub types: Vec<Vec<u8>>,
    /// The value that must be an object.
    pub need: Option<Slot>,
    /// Lists: each object in the first one present gives a row.
    pub each: Vec<Slot>,
}

impl Spec {
    /// The table that `text` describes; `None` if the text is invalid.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let mut line = Tree::default();
        let mut spec = Self {
            // Every table needs the type of a line.
            tag: line.want("type")?,
            columns: Vec::new(),
            block: Tree::default(),
            types: Vec::new(),
            need: None,
            each: Vec::new(),
            line,
        };
        spec.line.want("subtype")?;
        for row in text.lines() {
            let mut words = row.split(' ');
            match words.next()? {
                "!where" => spec.types = words.map(|word| word.as_bytes().to_vec()).collect(),
                "!need" => spec.need = Some(spec.line.want(words.next()?)?),
                "!each" => {
                    let lists = words.map(|path| spec.line.want(path));
                    spec.each = lists.collect::<Option<_>>()?;
                    if spec.each.is_empty() {
                        return None;
                    }
                }
                name => {
                    let kind = Type::of(words.next()?)?;
                    let rule = spec.rule(words.next()?, &words.collect::<Vec<_>>())?;
                    let name = name.to_owned();
                    spec.columns.push(Column { name, kind, rule });
                }
            }
        }
        Some(spec)
    }

    fn rule(&mut self, name: &str, words: &[&str]) -> Option<Rule> {
        let places = |spec: &mut Self| -> Option<Vec<Origin>> {
            words.iter().map(|path| spec.place(path)).collect()
        };
        Some(match name {
            "path" => Rule::Path,
            "offset" => Rule::Offset,
            "index" => Rule::Index,
            "first" => Rule::First(places(self)?),
            "kind" => Rule::Kind(places(self)?),
            "joined" => Rule::Joined(places(self)?),
            "if" => {
                let pairs = words.chunks_exact(2);
                let pairs = pairs.map(|pair| Some((pair[0].into(), self.line.want(pair[1])?)));
                Rule::If(pairs.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    fn place(&mut self, path: &str) -> Option<Origin> {
        Some(match path.strip_prefix("*.") {
            Some(path) => Origin::Block(self.block.want(path)?),
            None => Origin::Line(self.line.want(path)?),
        })
    }

    /// What the values of each column are.
    #[must_use]
    pub fn types(&self) -> Vec<Type> {
        self.columns.iter().map(|column| column.kind).collect()
    }
}

#[cfg(test)]
pub(super) mod tests;
