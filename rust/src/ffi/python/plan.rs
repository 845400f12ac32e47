//! Turns the tuples of plans.py into additions to the plan of a reader. The items of a tuple are in the same order as the Rust struct's
//! fields.

use super::api::{api, Size};
use super::object::{Object, Python, StructClass, HEADER};
use super::{bytes_of, none};
use crate::simd::Key;
use crate::typed::plan::{Class, Field, Kind, Member, Plan, Shape, Top, EXTRA, MAX_FIELDS};
use crate::typed::Reader;

/// Adds `(classes, first_kind, kinds, shapes, tops, open_types, unknown)` to the plan of a reader:
///
/// * `classes`: the number of classes after the addition.
/// * `first_kind`: the index of the first item of `kinds`. The items replace existing kinds, starting at this index.
/// * `kinds`: for each new kind `(may_be, item, members, tag_key, words, unknown)`. A member is `(class, tag)`. A word is
///   `(bytes, string)`. `unknown` is None or `(class, reason)`.
/// * `shapes`: for each newly planned class `(class, (type, words, tag, fields, extra))`, or `(class, None)` if the lines of the class
///   always fall through. A field is `(key, kind, slot, defaults)`. Its kind is None if the field is the tag. `defaults` has one item or is
///   empty. `extra` is the slot of the dict with all other keys, or None.
/// * `tops`: for each new class of a line `(type, subtype, class)`. The subtype may be None.
/// * `open_types`: types such as `system` that have a class for subtypes that are not in `tops`.
/// * `unknown`: None or `(class of unknown lines, reason for an unknown type, reason for an unknown subtype)`.
///
/// Returns `None` for any other tuple.
pub fn change(reader: &mut Reader<Python>, additions: &Object) -> Option<()> {
    let classes = index_at(additions, 0)?;
    let first_kind = index_at(additions, 1)?;
    let kinds = each_at(additions, 2, kind)?;
    let shapes = each_at(additions, 3, |row| {
        let builder = &mut reader.builder;
        Some((
            index_at(row, 0)?,
            optional_at(row, 1, |it| shape(builder, it))?,
        ))
    })?;
    let tops = each_at(additions, 4, top)?;
    let open_types = each_at(additions, 5, bytes)?;
    let unknown = optional_at(additions, 6, |row| {
        Some((item(row, 0)?, item(row, 1)?, item(row, 2)?))
    })?;
    reader.change_plan(|plan: &mut Plan<Object, StructClass>| {
        plan.classes.resize_with(classes, || Class::Unplanned);
        plan.kinds.truncate(first_kind);
        plan.kinds.extend(kinds);
        for (id, shape) in shapes {
            // The plan of a class never changes: the reader remembers fields by their indexes.
            if !matches!(plan.classes.get(id), Some(Class::Unplanned)) {
                continue;
            }
            plan.classes[id] = match shape.flatten() {
                None => Class::Refused,
                Some((class, tag, fields, required, extra)) => {
                    let start = plan.fields.len();
                    plan.fields.extend(fields);
                    Class::Planned(Shape {
                        class,
                        fields: start..plan.fields.len(),
                        required,
                        tag,
                        extra,
                    })
                }
            };
        }
        plan.tops.extend(tops);
        plan.open_types.extend(open_types);
        plan.unknown = unknown.or(plan.unknown.take());
    });
    Some(())
}

fn kind(row: &Object) -> Option<Kind<Object>> {
    let tag_key = bytes_at(row, 3)?;
    let member = |row: &Object| {
        let tag = bytes_at(row, 1)?;
        Some(Member {
            class: index_at(row, 0)?,
            opening: [b"{\"", tag_key.as_slice(), b"\":\"", tag.as_slice(), b"\""].concat(),
            tag,
        })
    };
    Some(Kind {
        may_be: u32::try_from(index_at(row, 0)?).ok()?,
        item: index_at(row, 1)?,
        classes: each_at(row, 2, member)?,
        words: each_at(row, 4, |row| Some((bytes_at(row, 0)?, item(row, 1)?)))?,
        unknown: optional_at(row, 5, |row| Some((item(row, 0)?, item(row, 1)?)))?,
        tag_key,
    })
}

type ShapeParts = (StructClass, Vec<u8>, Vec<Field>, u128, Option<usize>);

/// Returns the parts of the class that `row` describes. Returns `Some(None)` if the class has more than [`MAX_FIELDS`] fields, so that the
/// reader cannot make its records, and `None` if `row` is no description.
#[allow(clippy::option_option)] // The doc comment says what both mean.
fn shape(python: &mut Python, row: &Object) -> Option<Option<ShapeParts>> {
    let rows = items_at(row, 3)?;
    if rows.len() > MAX_FIELDS {
        return Some(None);
    }
    let words = index_at(row, 1)?;
    // A required field contains None until the reader has read its value.
    let mut defaults = vec![Some(none()); words.checked_sub(HEADER)?];
    let mut required = 0;
    let mut field = |(index, row): (usize, &Object)| {
        let slot = index_at(row, 2)?;
        let kind = optional_at(row, 1, index_of)?;
        if kind.is_some() {
            let place = defaults.get_mut(slot.checked_sub(HEADER)?)?;
            match items_at(row, 3)?.pop() {
                Some(default) => *place = Some(default),
                None => required |= 1 << index,
            }
        }
        let key = Key::new(&bytes_at(row, 0)?)?;
        Some(Field::new(key, kind, slot))
    };
    let fields = rows.iter().enumerate().map(&mut field);
    let fields = fields.collect::<Option<Vec<_>>>()?;
    let extra = optional_at(row, 4, index_of)?;
    if extra.is_some_and(|slot| !(HEADER..words).contains(&slot)) {
        return None;
    }
    let slots = (fields.iter().enumerate())
        .filter(|(_, field): &(usize, &Field)| field.kind().is_some())
        .map(|(bit, field)| (bit, field.slot()))
        .chain(extra.map(|slot| (EXTRA, slot)));
    Some(Some((
        python.class(item(row, 0)?, defaults, slots)?,
        bytes_at(row, 2)?,
        fields,
        required,
        extra,
    )))
}

fn top(row: &Object) -> Option<Top> {
    Some(Top {
        tag: bytes_at(row, 0)?,
        subtype: optional_at(row, 1, bytes)?,
        class: index_at(row, 2)?,
    })
}

// --- tuples

/// Returns an item of a tuple; `None` if the tuple is too short or the object is not a tuple.
pub fn item(tuple: &Object, index: Size) -> Option<Object> {
    // SAFETY: see `api`. The tuple is alive, and so are its items.
    unsafe {
        let item = (api().PyTuple_GetItem)(tuple.pointer(), index);
        if item.is_null() {
            (api().PyErr_Clear)();
            return None;
        }
        Some(Object::borrowed(item))
    }
}

/// Returns all items of a tuple; `None` if the object is not a tuple.
pub fn items(tuple: &Object) -> Option<Vec<Object>> {
    // SAFETY: see `api`.
    let len = unsafe { (api().PyTuple_Size)(tuple.pointer()) };
    if len < 0 {
        // SAFETY: see `api`.
        unsafe { (api().PyErr_Clear)() };
        return None;
    }
    (0..len).map(|index| item(tuple, index)).collect()
}

/// Returns all items of the tuple at an index of `tuple`.
pub fn items_at(tuple: &Object, index: Size) -> Option<Vec<Object>> {
    items(&item(tuple, index)?)
}

/// Calls `read` with each item of the tuple at an index of `tuple`. Returns `None` if one call does.
fn each_at<T>(
    tuple: &Object,
    index: Size,
    read: impl FnMut(&Object) -> Option<T>,
) -> Option<Vec<T>> {
    items_at(tuple, index)?.iter().map(read).collect()
}

/// Calls `read` with the item at an index of a tuple. Returns `Some(None)` for Python's None.
#[allow(clippy::option_option)] // `None` is an error, as everywhere in this module.
fn optional_at<T>(
    tuple: &Object,
    index: Size,
    read: impl FnOnce(&Object) -> Option<T>,
) -> Option<Option<T>> {
    let item = item(tuple, index)?;
    if item.pointer() == api()._Py_NoneStruct {
        return Some(None);
    }
    read(&item).map(Some)
}

/// Returns the value of an int; `None` if it is negative or the object is not an int.
fn index_of(object: &Object) -> Option<usize> {
    // SAFETY: see `api`. For an object that is not an int, `PyLong_AsLongLong` raises an exception and returns -1.
    let value = unsafe { (api().PyLong_AsLongLong)(object.pointer()) };
    if value == -1 {
        // SAFETY: see `api`.
        unsafe { (api().PyErr_Clear)() };
    }
    usize::try_from(value).ok()
}

/// Returns the int at an index of a tuple; `None` if it is negative or not an int.
pub fn index_at(tuple: &Object, index: Size) -> Option<usize> {
    index_of(&item(tuple, index)?)
}

fn bytes(object: &Object) -> Option<Vec<u8>> {
    // SAFETY: the object is alive while its bytes are copied.
    unsafe { bytes_of(object.pointer()).map(<[u8]>::to_vec) }
}

/// Returns a copy of the `bytes` at an index of a tuple.
pub fn bytes_at(tuple: &Object, index: Size) -> Option<Vec<u8>> {
    bytes(&item(tuple, index)?)
}
