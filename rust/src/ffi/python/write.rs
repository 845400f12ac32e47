//! Functions that write messages, and what they see in CPython's objects.

#![allow(clippy::inline_always)] // They are a load or two, on the way of every value.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::c_int;
use std::marker::PhantomData;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::{null_mut, NonNull};

use super::api::{api, flags, Method, Pointer, Size};
use super::object::{size, AddressHashing, Object, HEADER};
use super::plan::{bytes_at, index_at, item, items_at};
use super::public::method;
use super::{body, bool, none, tuple, TAKES_NONE, TAKES_ONE};
use crate::simd::Words;
use crate::typed::{Seen, Shape, Source, Text, Unwritten, Writer};

/// An object that stays as it is, and alive, as long as `'a` lasts: somebody has a reference to it or to what holds it, this thread
/// has the interpreter's lock, and no function is called by which other code might run.
#[derive(Clone, Copy)]
struct Still<'a>(NonNull<std::ffi::c_void>, PhantomData<&'a ()>);

impl<'a> Still<'a> {
    /// # Safety
    ///
    /// `pointer` is an object for which all this is so.
    #[inline]
    unsafe fn new(pointer: Pointer) -> Self {
        // SAFETY: an object is not null.
        Self(unsafe { NonNull::new_unchecked(pointer) }, PhantomData)
    }

    #[inline]
    fn pointer(self) -> Pointer {
        self.0.as_ptr()
    }

    /// A word of the object.
    ///
    /// # Safety
    ///
    /// It has so many words.
    #[inline]
    unsafe fn word(self, index: usize) -> Pointer {
        // SAFETY: the caller promises it.
        unsafe { self.pointer().cast::<Pointer>().add(index).read() }
    }

    #[inline]
    fn class(self) -> Pointer {
        // SAFETY: the class stands after the count in all versions that are known.
        unsafe { self.word(1) }
    }

    /// The bits of a string.
    ///
    /// # Safety
    ///
    /// It is a string.
    #[inline(always)]
    unsafe fn flags(self) -> u32 {
        // SAFETY: the caller promises it.
        unsafe { self.pointer().cast::<u32>().add(2 * flags::WORD).read() }
    }

    /// The text of a string of ASCII, if its characters follow it.
    ///
    /// # Safety
    ///
    /// It is a string.
    #[inline(always)]
    unsafe fn ascii(self) -> Option<&'a [u8]> {
        // SAFETY: strings are as `flags` says, which was tried out; they have as many characters as they say, and do not change.
        unsafe {
            if self.flags() & flags::ASCII_TOO != flags::ASCII_TOO {
                return None;
            }
            let from = self.pointer().cast::<u8>().add(api().characters);
            Some(std::slice::from_raw_parts(
                from,
                self.word(flags::LENGTH) as usize,
            ))
        }
    }

    /// The text of a string that is not ASCII, if its characters follow it.
    fn text(self) -> Option<Text<'a>> {
        // SAFETY: strings are as `flags` says, which was tried out; they have as many characters as they say, and as many bytes of
        // UTF-8, and do not change.
        unsafe {
            let bits = self.flags();
            let len = self.word(flags::LENGTH) as usize;
            let at = |from: usize| self.pointer().cast::<u8>().add(from);
            if bits & flags::COMPACT == 0 {
                return None;
            }
            let utf8 = api().characters / size_of::<Pointer>();
            let made = self.word(utf8 + 1);
            if !made.is_null() {
                let len = self.word(utf8) as usize;
                return Some(Text::Utf8(std::slice::from_raw_parts(made.cast(), len)));
            }
            let from = at(api().wide_characters?);
            Some(match flags::width(bits) {
                1 => Text::Latin(std::slice::from_raw_parts(from, len)),
                2 => Text::Wide(std::slice::from_raw_parts(from.cast(), len)),
                4 => Text::Full(std::slice::from_raw_parts(from.cast(), len)),
                _ => return None,
            })
        }
    }
}

/// A whole number of any size.
#[inline(never)]
fn whole_number(value: Still<'_>) -> Seen<'_, Still<'_>> {
    let mut overflow: c_int = 0;
    // SAFETY: see `api`.
    let number =
        unsafe { (api().PyLong_AsLongLongAndOverflow)(value.pointer(), &raw mut overflow) };
    if overflow == 0 {
        Seen::Int(number)
    } else {
        Seen::Other
    }
}

/// The flag of the classes that derive from `dict`.
const IS_DICT: u64 = 1 << 29;

/// The fields of a class.
struct Fields {
    /// The slot of each, and the address of the value with which it is left out. That lives as long as `kept`.
    all: Vec<(usize, usize)>,
    /// The slot of the keys that have no field.
    extra: usize,
    #[allow(dead_code)] // It only keeps them alive.
    kept: Vec<Object>,
}

/// Looks at CPython's objects.
struct Objects {
    /// The shapes of classes, by their addresses; none for a class that is not written here. It keeps the classes alive.
    shapes: HashMap<usize, (Object, Option<usize>), AddressHashing>,
    /// The class of the classes that may have a shape.
    meta: Object,
    /// What stands for a key that is absent.
    unset: Object,
}

impl Objects {
    /// What a value is whose class is none of the most usual.
    #[inline(never)]
    fn of_class<'a>(&self, class: Still<'a>) -> Seen<'a, Still<'a>> {
        if let Some((_, shape)) = self.shapes.get(&(class.pointer() as usize)) {
            return shape.map_or(Seen::Other, Seen::Record);
        }
        if class.class() == self.meta.pointer() {
            return Seen::Unplanned(class);
        }
        // As msgspec does: what such a class does otherwise than a dict is not asked for.
        // SAFETY: see `api`.
        #[allow(clippy::useless_conversion)] // Where a long has 64 bits.
        if u64::from(unsafe { (api().PyType_GetFlags)(class.pointer()) }) & IS_DICT != 0 {
            return Seen::Dict;
        }
        Seen::Other
    }
}

impl<'a> Source<'a> for Objects {
    type Value = Still<'a>;
    type Fields = Fields;

    #[inline(always)]
    fn look(&self, value: Still<'a>) -> Seen<'a, Still<'a>> {
        let class = value.class();
        let api = api();
        // SAFETY: see `api`; each is called with an object of its class, and runs no code of others.
        unsafe {
            if class == api.PyUnicode_Type {
                // SAFETY: it is a string.
                return match value.ascii() {
                    Some(text) => Seen::Text(Text::Ascii(text)),
                    None => value.text().map_or(Seen::Other, Seen::Text),
                };
            }
            if value.pointer() == api._Py_NoneStruct {
                return Seen::Null;
            }
            if class == api.PyList_Type {
                return Seen::List;
            }
            if class == api.PyDict_Type {
                return Seen::Dict;
            }
            if class == api.PyLong_Type {
                if let Some(number) = api.digit.value(value.pointer()) {
                    return Seen::Int(number);
                }
                return whole_number(value);
            }
            if class == api.PyFloat_Type {
                return Seen::Float((api.PyFloat_AsDouble)(value.pointer()));
            }
            if value.pointer() == api._Py_TrueStruct {
                return Seen::Bool(true);
            }
            if value.pointer() == api._Py_FalseStruct {
                return Seen::Bool(false);
            }
            self.of_class(Still::new(class))
        }
    }

    #[inline(always)]
    fn next(
        &self,
        record: Still<'a>,
        fields: &Fields,
        mut from: usize,
    ) -> Option<(usize, Option<Still<'a>>)> {
        // SAFETY: the slots are those of the class, found by looking for them. Each has an object, or null.
        unsafe {
            // Most fields are left out: several at a time.
            while let Some(some) = fields.all.get(from..from + 4) {
                let differs = |field: &(usize, usize)| record.word(field.0) as usize ^ field.1;
                if some.iter().fold(0, |all, field| all | differs(field)) != 0 {
                    break;
                }
                from += 4;
            }
            for &(slot, omitted) in fields.all.get(from..).unwrap_or_default() {
                let value = record.word(slot);
                if value as usize != omitted && value != self.unset.pointer() {
                    return Some((from, (!value.is_null()).then(|| Still::new(value))));
                }
                from += 1;
            }
            None
        }
    }

    #[inline(always)]
    fn extra(&self, record: Still<'a>, fields: &Fields) -> Option<Still<'a>> {
        // SAFETY: the slot is one of the class. If somebody has emptied it, something stands for it that is no dict.
        unsafe {
            let extra = record.word(fields.extra);
            (extra != api()._Py_NoneStruct).then(|| {
                let odd = api()._Py_TrueStruct;
                Still::new(if extra.is_null() { odd } else { extra })
            })
        }
    }

    #[inline]
    fn items(&self, list: Still<'a>, mut each: impl FnMut(Still<'a>) -> bool) {
        // SAFETY: see `api`; the list does not change.
        unsafe {
            for index in 0..(api().PyList_Size)(list.pointer()) {
                if !each(Still::new((api().PyList_GetItem)(list.pointer(), index))) {
                    break;
                }
            }
        }
    }

    #[inline]
    fn pairs(&self, dict: Still<'a>, mut each: impl FnMut(Still<'a>, Still<'a>) -> bool) {
        let (mut at, mut key, mut value) = (0, null_mut(), null_mut());
        // SAFETY: see `api`; the dict does not change.
        unsafe {
            while (api().PyDict_Next)(dict.pointer(), &raw mut at, &raw mut key, &raw mut value)
                != 0
                && each(Still::new(key), Still::new(value))
            {}
        }
    }
}

/// What the functions share. There is one in a process, so that they need no object to find it in, and can be pickled by name.
struct State {
    writer: Writer<Objects, Fields>,
    /// Then everything is left to the fallback.
    is_busy: bool,
    /// The class that the last message would need a shape of.
    wanted: Option<Object>,
    /// Encodes what is left to it.
    fallback: Object,
}

struct Cell(UnsafeCell<Option<State>>);

// SAFETY: it is used with the interpreter's lock held.
unsafe impl Sync for Cell {}

static STATE: Cell = Cell(UnsafeCell::new(None));

/// The state, unless it is in use.
///
/// # Safety
///
/// The interpreter's lock is held, and `is_busy` is set back when the state is not used any more.
unsafe fn state<'a>() -> Option<&'a mut State> {
    // SAFETY: only one has it at a time, which `is_busy` sees to.
    unsafe {
        let state = (*STATE.0.get()).as_mut()?;
        if state.is_busy {
            return None;
        }
        state.is_busy = true;
        Some(state)
    }
}

pub static NEW_WRITER: Method = Method {
    name: c"new_writer".as_ptr(),
    function: new_writer,
    flags: TAKES_ONE,
    doc: c"new_writer((fallback, module, doc, meta, unset)) -> (encode, encode_lines, add, wanted, stop): the functions of the writer.".as_ptr(),
};

static ENCODE_LINES: Method = Method {
    name: c"encode_lines".as_ptr(),
    function: encode_lines,
    flags: TAKES_ONE,
    doc: c"encode_lines((messages, start)) -> (lines, end): the lines of a list up to the first that is to be encoded otherwise; None if there are none.".as_ptr(),
};

static ADD: Method = Method {
    name: c"add".as_ptr(),
    function: add,
    flags: TAKES_ONE,
    doc: c"add((class, shape)) -> bool: says how a class is written; False while the writer is in use.".as_ptr(),
};

static WANTED: Method = Method {
    name: c"wanted".as_ptr(),
    function: wanted,
    flags: TAKES_NONE,
    doc: c"wanted() -> the class that a message would have needed the shape of, or None.".as_ptr(),
};

static STOP: Method = Method {
    name: c"stop".as_ptr(),
    function: stop,
    flags: TAKES_NONE,
    doc: c"stop(): from now on everything is left to the fallback.".as_ptr(),
};

unsafe extern "C" fn new_writer(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: CPython calls this with an argument that is alive.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let state = State {
            writer: Writer::new(Objects {
                shapes: HashMap::default(),
                meta: item(&argument, 3)?,
                unset: item(&argument, 4)?,
            }),
            is_busy: false,
            wanted: None,
            fallback: item(&argument, 0)?,
        };
        let module = item(&argument, 1)?;
        let encode = method(c"encode", encode, bytes_at(&argument, 2)?)?;
        let methods = [encode, &ENCODE_LINES, &ADD, &WANTED, &STOP].map(|method| {
            Object::owned((api().PyCFunction_NewEx)(
                method,
                null_mut(),
                module.pointer(),
            ))
        });
        let before = (*STATE.0.get()).replace(state);
        // What that frees may run other code.
        drop(before);
        tuple(methods.into_iter().collect::<Option<Vec<_>>>()?)
    })
}

/// So many bytes are written before they are moved to where they stay.
const PART: usize = 32 * 1024;

/// `more` behind the bytes that are there, with room for `room` in all, or for no others if that is 0; `None` without memory.
fn appended(bytes: Option<(Object, usize)>, more: &[u8], room: usize) -> Option<(Object, usize)> {
    // SAFETY: see `api`. Nobody else has the bytes yet, which are written where they have room; if that cannot be made, the pointer
    // to them is null.
    unsafe {
        let (bytes, len) = match bytes {
            Some(bytes) => bytes,
            None if room == 0 => {
                let bytes =
                    (api().PyBytes_FromStringAndSize)(more.as_ptr().cast(), size(more.len()));
                return Some((Object::owned(bytes)?, more.len()));
            }
            None => {
                let bytes = (api().PyBytes_FromStringAndSize)(std::ptr::null(), size(room));
                (Object::owned(bytes)?, 0)
            }
        };
        let end = len + more.len();
        let (mut data, mut there) = (null_mut(), 0);
        (api().PyBytes_AsStringAndSize)(bytes.pointer(), &raw mut data, &raw mut there);
        let mut bytes = bytes.release();
        if there < size(end) || room == 0 {
            (api()._PyBytes_Resize)(&raw mut bytes, size(room.max(end)));
        }
        let bytes = Object::owned(bytes)?;
        (api().PyBytes_AsStringAndSize)(bytes.pointer(), &raw mut data, &raw mut there);
        std::ptr::copy_nonoverlapping(more.as_ptr(), data.cast::<u8>().add(len), more.len());
        Some((bytes, end))
    }
}

/// The lines of messages up to the first that is not written here, and how many they are; `None` without memory, and while the
/// writer is in use.
fn lines<'a>(messages: impl ExactSizeIterator<Item = Still<'a>>) -> Option<(Object, usize)> {
    // SAFETY: the functions that call this are called by CPython, and `is_busy` is set back.
    let state = unsafe { state()? };
    let (mut before, mut count) = (None, 0);
    let write = |writer: &mut Writer<Objects, Fields>| {
        let mut lines: Option<(Object, usize)> = None;
        let all = messages.len();
        for message in messages {
            match writer.line(message) {
                Ok(()) => count += 1,
                Err(Unwritten::FallsThrough) => break,
                Err(Unwritten::Wants(class)) => {
                    // SAFETY: the class is alive as long as the message is.
                    let class = unsafe { Object::borrowed(class.pointer()) };
                    before = state.wanted.replace(class);
                    break;
                }
            }
            if writer.written().len() > PART {
                // As if the others were like these, within bounds.
                let end = lines.as_ref().map_or(0, |(_, end)| *end) + writer.written().len();
                let room = (end / count + 1).saturating_mul(all);
                lines = Some(appended(
                    lines,
                    writer.written(),
                    room.clamp(2 * end, 16 * end),
                )?);
                writer.clear();
            }
        }
        appended(lines, writer.written(), 0)
    };
    let lines = write(&mut state.writer);
    state.writer.clear();
    state.is_busy = false;
    // After that, for what this frees may encode.
    drop(before);
    lines.map(|(lines, _)| (lines, count))
}

unsafe extern "C" fn encode(
    _: Pointer,
    arguments: *const Pointer,
    count: Size,
    names: Pointer,
) -> Pointer {
    // SAFETY: CPython calls this with so many arguments that are alive, and with those that have names after them.
    unsafe {
        if count == 1 && names.is_null() {
            let run = || lines([Still::new(*arguments)].into_iter());
            if let Ok(Some((line, 1))) = catch_unwind(AssertUnwindSafe(run)) {
                return line.release();
            }
        }
        let Some(fallback) = (*STATE.0.get())
            .as_ref()
            .map(|state| state.fallback.clone())
        else {
            return null_mut();
        };
        (api().PyObject_Vectorcall)(fallback.pointer(), arguments, count.unsigned_abs(), names)
    }
}

unsafe extern "C" fn encode_lines(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: CPython calls this with an argument that is alive; of a list the items are, too, as long as no other code runs.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let messages = item(&argument, 0)?;
        let start = index_at(&argument, 1)?;
        if messages.class() != api().PyList_Type {
            return None;
        }
        let count = (api().PyList_Size)(messages.pointer());
        let items = (size(start)..count)
            .map(|index| Still::new((api().PyList_GetItem)(messages.pointer(), index)));
        let (lines, count) = lines(items).unzip();
        let end = super::number(start + count.unwrap_or(0));
        tuple([lines.unwrap_or_else(none), super::int(end)?])
    })
}

unsafe extern "C" fn stop(_: Pointer, _: Pointer) -> Pointer {
    // SAFETY: as above; it is in use for ever.
    body(|| unsafe {
        state();
        Some(none())
    })
}

unsafe extern "C" fn wanted(_: Pointer, _: Pointer) -> Pointer {
    // SAFETY: as above.
    body(|| unsafe {
        let wanted = state().and_then(|state| {
            state.is_busy = false;
            state.wanted.take()
        });
        Some(wanted.unwrap_or_else(none))
    })
}

/// Adds `(class, None)` for a class that is not written here, or `(class, (words, opening, tag_key, fields, extra))`, where a field is
/// `(key, slot, default)`: the key as `,"key":`, and the value with which it is left out; and `extra` the
/// slot of the keys that have no field.
unsafe extern "C" fn add(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: as above.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let class = item(&argument, 0)?;
        let row = item(&argument, 1)?;
        let shape = if row.pointer() == api()._Py_NoneStruct {
            None
        } else {
            let words = index_at(&row, 0)?;
            let is_slot = |slot: &usize| (HEADER..words).contains(slot);
            let extra = index_at(&row, 4).filter(is_slot)?;
            let (mut keys, mut all, mut kept) = (Vec::new(), Vec::new(), Vec::new());
            for field in items_at(&row, 3)? {
                keys.push(Words::new(&bytes_at(&field, 0)?));
                let slot = index_at(&field, 1).filter(is_slot)?;
                let omitted = item(&field, 2)?;
                all.push((slot, omitted.pointer() as usize));
                kept.push(omitted);
            }
            Some(Shape {
                opening: Words::new(&bytes_at(&row, 1)?),
                tag_key: Words::new(&bytes_at(&row, 2)?),
                fields: Fields { all, extra, kept },
                keys,
            })
        };
        let Some(state) = state() else {
            return Some(bool(false));
        };
        let State { writer, .. } = state;
        // A class that has a shape keeps it.
        let is_new = !writer
            .source
            .shapes
            .contains_key(&(class.pointer() as usize));
        if is_new {
            let number = shape.map(|shape| writer.add(shape));
            let key = class.pointer() as usize;
            writer.source.shapes.insert(key, (class, number));
        }
        state.is_busy = false;
        Some(bool(true))
    })
}
