//! Functions for Python that are called without cffi: a builtin function costs a tenth of a call through it.
//!
//! `install` puts them into a dict. They hold the interpreter's lock all the time, so a reader is used by one thread at a
//! time; but a collection of garbage within one may run other code, which is then told that the reader is busy.

mod api;
mod object;
mod plan;

use std::ffi::{c_void, CStr};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;

use self::api::{api, keep_loaded, load, Buffer, Method, Pointer, Size};
use self::object::{Object, Python, HEADER};
use crate::typed::{Line, Reader};

/// A reader, as the functions of one have it.
struct State {
    reader: Reader<Python>,
    is_busy: bool,
    /// The messages of the block that is read.
    messages: Vec<Option<Object>>,
    /// Of each line that fell through: its index, where it begins and ends, and which class it wants, or -1.
    falls: Vec<[i64; 4]>,
    /// The class that the last line of `read_line` wants, or -1.
    wanted: i64,
}

const CAPSULE: &CStr = c"claude_wire.reader";

const TAKES_ONE: i32 = 8;
const TAKES_NONE: i32 = 4;

static NEW_READER: Method = Method {
    name: c"new_reader".as_ptr(),
    function: new_reader,
    flags: TAKES_NONE,
    doc: c"new_reader() -> (change_plan, read_block, read_line, read_whole_line, wanted): the functions of a new reader.".as_ptr(),
};

static SLOTS_OF: Method = Method {
    name: c"slots_of".as_ptr(),
    function: slots_of,
    flags: TAKES_ONE,
    doc: c"slots_of((instance, words, values)) -> slots: which word of an instance each of these objects stands in.".as_ptr(),
};

static CHANGE_PLAN: Method = Method {
    name: c"change_plan".as_ptr(),
    function: change_plan,
    flags: TAKES_ONE,
    doc:
        c"change_plan(additions) -> bool: adds to what the reader knows; False while it is in use."
            .as_ptr(),
};

static READ_LINE: Method = Method {
    name: c"read_line".as_ptr(),
    function: read_line::<false>,
    flags: TAKES_ONE,
    doc: c"read_line(line) -> message, or None if it is to be decoded otherwise. With or without its line feed.".as_ptr(),
};

static READ_WHOLE_LINE: Method = Method {
    name: c"read_whole_line".as_ptr(),
    function: read_line::<true>,
    flags: TAKES_ONE,
    doc: c"read_whole_line(chunk) -> message, or None if the chunk is not a usual line with its line feed.".as_ptr(),
};

static WANTED: Method = Method {
    name: c"wanted".as_ptr(),
    function: wanted,
    flags: TAKES_NONE,
    doc: c"wanted() -> the class that the last line read alone would need, or -1.".as_ptr(),
};

static READ_BLOCK: Method = Method {
    name: c"read_block".as_ptr(),
    function: read_block,
    flags: TAKES_ONE,
    doc: c"read_block(lines) -> (messages, unknown, falls), or None while the reader is in use."
        .as_ptr(),
};

/// Puts the functions for Python into the dict at this address. False where there is no CPython that is known.
///
/// # Safety
///
/// As of [`cw_python`](super::cw_python).
pub unsafe fn install(dict: u64) -> bool {
    // SAFETY: the lock is taken before anything else is asked for. cffi has given it up for the call.
    unsafe {
        let Some(lock) = api::lock() else {
            return false;
        };
        let is_known = load() && keep_loaded();
        if is_known {
            for method in [&NEW_READER, &SLOTS_OF] {
                let function =
                    Object::owned((api().PyCFunction_NewEx)(method, null_mut(), null_mut()));
                if let Some(function) = function {
                    #[allow(clippy::cast_possible_truncation)] // An address has 64 bits here.
                    let dict = dict as usize as Pointer;
                    (api().PyDict_SetItemString)(dict, method.name, function.pointer());
                }
            }
        }
        lock.release();
        is_known
    }
}

/// Runs the body of a function that Python calls. If the body panics, or returns nothing and has raised nothing, Python gets a
/// `SystemError`.
fn body(run: impl FnOnce() -> Option<Object>) -> Pointer {
    let result = catch_unwind(AssertUnwindSafe(run)).ok().flatten();
    result.map_or_else(
        || {
            // SAFETY: see `api`.
            unsafe {
                if (api().PyErr_Occurred)().is_null() {
                    (api().PyErr_SetString)(
                        api().PyExc_SystemError.cast::<Pointer>().read(),
                        c"a bug in claude_wire".as_ptr(),
                    );
                }
            };
            null_mut()
        },
        Object::release,
    )
}

unsafe extern "C" fn new_reader(_: Pointer, _: Pointer) -> Pointer {
    body(|| {
        let state = Box::new(State {
            reader: Reader::new(Python::default()),
            is_busy: false,
            messages: Vec::new(),
            falls: Vec::new(),
            wanted: -1,
        });
        // SAFETY: see `api`; the capsule owns the state from here on.
        unsafe {
            let capsule = (api().PyCapsule_New)(
                Box::into_raw(state).cast(),
                CAPSULE.as_ptr(),
                Some(drop_state),
            );
            let capsule = Object::owned(capsule)?;
            let bound = |method: &'static Method| {
                Object::owned((api().PyCFunction_NewEx)(
                    method,
                    capsule.pointer(),
                    null_mut(),
                ))
            };
            let methods = [
                &CHANGE_PLAN,
                &READ_BLOCK,
                &READ_LINE,
                &READ_WHOLE_LINE,
                &WANTED,
            ];
            tuple(methods.into_iter().map(bound).collect::<Option<Vec<_>>>()?)
        }
    })
}

unsafe extern "C" fn drop_state(capsule: Pointer) {
    // SAFETY: CPython calls this once, for a capsule that `new_reader` has made.
    unsafe {
        let state = (api().PyCapsule_GetPointer)(capsule, CAPSULE.as_ptr());
        if !state.is_null() {
            drop(Box::from_raw(state.cast::<State>()));
        }
    }
}

/// The state of a reader, unless it is in use.
///
/// # Safety
///
/// `capsule` is one of [`new_reader`], and alive as long as the state is used.
unsafe fn state<'a>(capsule: Pointer) -> Option<&'a mut State> {
    // SAFETY: only one has it at a time, which `is_busy` sees to.
    unsafe {
        let state = (api().PyCapsule_GetPointer)(capsule, CAPSULE.as_ptr()).cast::<State>();
        if state.is_null() || (*state).is_busy {
            return None;
        }
        (*state).is_busy = true;
        Some(&mut *state)
    }
}

unsafe extern "C" fn change_plan(capsule: Pointer, additions: Pointer) -> Pointer {
    // SAFETY: CPython calls this with the capsule that the function is bound to, and an argument that is alive.
    body(|| unsafe {
        let Some(state) = state(capsule) else {
            return Some(bool(false));
        };
        let changed = plan::change(&mut state.reader, &Object::borrowed(additions));
        state.is_busy = false;
        changed.map(|()| bool(true))
    })
}

unsafe extern "C" fn read_block(capsule: Pointer, lines: Pointer) -> Pointer {
    // SAFETY: as above.
    body(|| unsafe {
        let Some(state) = state(capsule) else {
            return Some(none());
        };
        let read = with_bytes(lines, |data| read_lines(state, data));
        state.messages = Vec::new();
        state.falls = Vec::new();
        state.is_busy = false;
        let read = read?;
        if read.is_none() {
            (api().PyErr_NoMemory)();
        }
        read
    })
}

/// The longest chunk that is looked at as one line: for a longer one it does not matter.
const MAX_CHUNK: usize = 64 * 1024;

/// Reads one line. If it must be `WHOLE`, it ends with a LF, is shorter than [`MAX_CHUNK`], and has nothing unknown in it,
/// which somebody counts.
unsafe extern "C" fn read_line<const WHOLE: bool>(capsule: Pointer, line: Pointer) -> Pointer {
    // SAFETY: as above; the bytes of an object are there as long as it is.
    body(|| unsafe {
        let (mut data, mut len) = (null_mut(), 0);
        if (api().PyBytes_AsStringAndSize)(line, &raw mut data, &raw mut len) != 0 {
            (api().PyErr_Clear)();
            return Some(none());
        }
        let line = std::slice::from_raw_parts(data.cast::<u8>(), usize::try_from(len).ok()?);
        let bare = line.strip_suffix(b"\n");
        if WHOLE && (bare.is_none() || line.len() >= MAX_CHUNK) {
            return Some(none());
        }
        let line = bare.unwrap_or(line);
        if simdutf8::basic::from_utf8(line).is_err() {
            return Some(none());
        }
        let Some(state) = state(capsule) else {
            return Some(none());
        };
        let read = state.reader.one(line);
        state.wanted = -1;
        state.is_busy = false;
        match read {
            Line::Message(message, is_unknown) if !(WHOLE && is_unknown) => Some(message),
            Line::Wants(class) => {
                state.wanted = number(class);
                Some(none())
            }
            _ => Some(none()),
        }
    })
}

unsafe extern "C" fn wanted(capsule: Pointer, _: Pointer) -> Pointer {
    // SAFETY: as above.
    body(|| unsafe {
        let wanted = state(capsule).map_or(-1, |state| {
            state.is_busy = false;
            std::mem::replace(&mut state.wanted, -1)
        });
        int(wanted)
    })
}

/// Reads a block, and returns the result of `read_block`; `None` if there is no memory, with a `MemoryError` raised.
fn read_lines(state: &mut State, data: &[u8]) -> Option<Object> {
    let State {
        reader,
        messages,
        falls,
        ..
    } = state;
    let mut unknown = 0;
    let mut is_full = false;
    reader.block(data, |line, start, end| {
        if messages.try_reserve(1).is_err() || falls.try_reserve(1).is_err() {
            is_full = true;
            return;
        }
        let wants = match line {
            Line::Message(message, is_unknown) => {
                unknown += i64::from(is_unknown);
                messages.push(Some(message));
                return;
            }
            Line::FallsThrough => -1,
            Line::Wants(class) => number(class),
        };
        falls.push([number(messages.len()), number(start), number(end), wants]);
        messages.push(None);
    });
    if is_full {
        return None;
    }
    let falls = if falls.is_empty() {
        none()
    } else {
        let rows = falls
            .iter()
            .map(|fall| tuple(fall.map(int).into_iter().collect::<Option<Vec<_>>>()?));
        list(rows.collect::<Option<Vec<_>>>()?)?
    };
    let messages = list(
        messages
            .drain(..)
            .map(|message| message.unwrap_or_else(none)),
    )?;
    tuple([messages, int(unknown)?, falls])
}

/// Which words of an instance some objects stand in, each in one.
unsafe extern "C" fn slots_of(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: CPython calls this with an argument that is alive; the instance has so many words, as Python says of its class.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let (instance, words) = (plan::item(&argument, 0)?, plan::index_at(&argument, 1)?);
        let slot_of = |value: Object| {
            let mut found = (HEADER..words).filter(|&slot| *instance.slot(slot) == value.pointer());
            match (found.next(), found.next()) {
                (Some(slot), None) => int(number(slot)),
                _ => int(-1),
            }
        };
        let values = plan::items(&plan::item(&argument, 2)?)?;
        list(
            values
                .into_iter()
                .map(slot_of)
                .collect::<Option<Vec<_>>>()?,
        )
    })
}

// --- small things

fn none() -> Object {
    // SAFETY: it is always alive.
    unsafe { Object::borrowed(api()._Py_NoneStruct) }
}

fn bool(value: bool) -> Object {
    // SAFETY: they are always alive.
    unsafe {
        Object::borrowed(if value {
            api()._Py_TrueStruct
        } else {
            api()._Py_FalseStruct
        })
    }
}

#[allow(clippy::cast_possible_wrap)] // No length is above isize::MAX.
fn number(index: usize) -> i64 {
    index as i64
}

fn int(value: i64) -> Option<Object> {
    // SAFETY: see `api`.
    unsafe { Object::owned((api().PyLong_FromLongLong)(value)) }
}

#[allow(clippy::cast_possible_wrap)] // No length is above isize::MAX.
fn tuple(items: impl IntoIterator<Item = Object, IntoIter: ExactSizeIterator>) -> Option<Object> {
    let items = items.into_iter();
    // SAFETY: see `api`; each index is one of the new tuple's, and its reference is handed over.
    unsafe {
        let tuple = Object::owned((api().PyTuple_New)(items.len() as Size))?;
        for (index, item) in items.enumerate() {
            (api().PyTuple_SetItem)(tuple.pointer(), index as Size, item.release());
        }
        Some(tuple)
    }
}

#[allow(clippy::cast_possible_wrap)] // No length is above isize::MAX.
fn list(items: impl IntoIterator<Item = Object, IntoIter: ExactSizeIterator>) -> Option<Object> {
    let items = items.into_iter();
    // SAFETY: as above.
    unsafe {
        let list = Object::owned((api().PyList_New)(items.len() as Size))?;
        for (index, item) in items.enumerate() {
            (api().PyList_SetItem)(list.pointer(), index as Size, item.release());
        }
        Some(list)
    }
}

/// A buffer, released when it is dropped, after a panic too.
struct Given(Buffer);

impl Drop for Given {
    fn drop(&mut self) {
        // SAFETY: it was given by `PyObject_GetBuffer`, and is released once.
        unsafe { (api().PyBuffer_Release)(&raw mut self.0) }
    }
}

/// Runs something on the bytes of an object that has a buffer; `None` with an exception if it has none.
///
/// # Safety
///
/// `object` is alive.
unsafe fn with_bytes<T>(object: Pointer, run: impl FnOnce(&[u8]) -> T) -> Option<T> {
    let mut buffer = std::mem::MaybeUninit::<Buffer>::uninit();
    // SAFETY: see `api`; a buffer that was given keeps its bytes until it is released. Who gave it promises that nobody writes.
    unsafe {
        if (api().PyObject_GetBuffer)(object, buffer.as_mut_ptr(), 0) != 0 {
            return None;
        }
        let buffer = Given(buffer.assume_init());
        let data = match usize::try_from(buffer.0.len) {
            Ok(len) if len > 0 => std::slice::from_raw_parts(buffer.0.data, len),
            _ => &[],
        };
        Some(run(data))
    }
}

const _: () = assert!(size_of::<*mut c_void>() == size_of::<usize>());
