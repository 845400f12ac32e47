//! The public functions `Decoder.feed` and `decode`, and tools to define more native functions: `peek`, `encode`.
//!
//! Each native function replaces a function written in Python, its *fallback*. For every case that the native function cannot handle, it
//! calls the fallback with the same arguments. The reverse, a Python function that calls a native one, is slower: calling a Python function
//! takes as long as reading a short line.

use std::ffi::{c_int, CStr, CString};
use std::ptr::null_mut;

use super::api::{api, Cell, Function, Method, Pointer, Size};
use super::feed::{self, Fed};
use super::object::{class_of, Object, HEADER};
use super::plan::{bytes_at, index_at, item};
use super::{
    body, builtin, bytes_of, read_one, state_of, value_of, with_bytes, with_reader, Feed, FEEDER,
};
use crate::fallible::collect;

/// `METH_FASTCALL | METH_KEYWORDS`: CPython passes the arguments in one array, positional arguments first, and the names of the keyword
/// arguments in a tuple.
const TAKES_ANY: c_int = 0x80 | 0x02;

/// The C type of a function with the flags [`TAKES_ANY`].
pub type TakesAny = unsafe extern "C" fn(Pointer, *const Pointer, Size, Pointer) -> Pointer;

/// Returns a new `PyMethodDef` for a function with the flags [`TAKES_ANY`]. CPython keeps the address, so the memory is never freed.
pub fn method(name: &'static CStr, function: TakesAny, doc: Vec<u8>) -> Option<&'static Method> {
    Some(Box::leak(Box::new(Method {
        name: name.as_ptr(),
        // SAFETY: CPython calls the function with the type that belongs to the flags: `TakesAny`.
        function: unsafe { std::mem::transmute::<TakesAny, Function>(function) },
        flags: TAKES_ANY,
        doc: CString::new(doc).ok()?.into_raw(),
    })))
}

/// Returns a new builtin function. `arguments` is a tuple: the fallback, its module's name, and the docstring.
pub fn function(name: &'static CStr, function: TakesAny, arguments: &Object) -> Option<Object> {
    let module = item(arguments, 1)?;
    let method = method(name, function, bytes_at(arguments, 2)?)?;
    builtin(method, None, Some(&module))
}

/// The state of `Decoder.feed`.
struct FeedState {
    /// The index of the word in a `Decoder` that holds the attribute `_feeder`, a capsule of `new_feed`. If the word holds null or any
    /// other object, the fallback takes the chunks.
    slot: usize,
    /// The Python implementation of `Decoder.feed`.
    fallback: Object,
    /// `Decoder._take`, which gets the messages and the falls of each chunk that has falls.
    take: Object,
}

static FEED: Cell<FeedState> = Cell::new();

/// The state of `decode`.
struct DecodeState {
    /// The capsule of the reader; `None` until a reader has called `serve_decode`.
    reader: Option<Object>,
    /// The Python implementation of `decode`.
    fallback: Object,
}

static DECODE: Cell<DecodeState> = Cell::new();

/// `new_feed_method((class, slot, doc, feed, take))`: returns the native method `feed` for a class of decoders, with `feed` as its
/// fallback. [`FeedState`] explains `slot` and `take`.
pub unsafe extern "C" fn new_feed_method(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: CPython calls this with a live argument.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let state = FeedState {
            slot: index_at(&argument, 1).filter(|&slot| slot >= HEADER)?,
            fallback: item(&argument, 3)?,
            take: item(&argument, 4)?,
        };
        let method = method(c"feed", feed, bytes_at(&argument, 2)?)?;
        let class = item(&argument, 0)?;
        let made = Object::owned((api().PyDescr_NewMethod)(class.pointer(), method))?;
        FEED.replace(state);
        Some(made)
    })
}

/// `new_decode((decode, module, doc))`: returns the native function `decode`, with `decode` as its fallback. Until `serve_decode` is called,
/// the function calls the fallback for every line.
pub unsafe extern "C" fn new_decode(_: Pointer, argument: Pointer) -> Pointer {
    // SAFETY: CPython calls this with a live argument.
    body(|| unsafe {
        let argument = Object::borrowed(argument);
        let state = DecodeState {
            reader: None,
            fallback: item(&argument, 0)?,
        };
        let made = function(c"decode", decode, &argument)?;
        DECODE.replace(state);
        Some(made)
    })
}

/// Makes `decode` use the reader that `capsule` owns.
///
/// # Safety
///
/// This thread must hold the interpreter's lock.
pub unsafe fn serve_decode(capsule: Object) {
    // SAFETY: the caller holds the interpreter's lock. Dropping the old capsule may run other code, so it is dropped last.
    let before = unsafe { (*DECODE.0.get()).as_mut() }.map(|state| state.reader.replace(capsule));
    drop(before);
}

/// `decoder.feed(data)`.
unsafe extern "C" fn feed(
    decoder: Pointer,
    arguments: *const Pointer,
    count: Size,
    names: Pointer,
) -> Pointer {
    // SAFETY: CPython calls this with an instance of the class, and every instance has the slot. `arguments` has `count` live positional
    // arguments, then one live argument for each of `names`.
    unsafe {
        let Some(state) = (*FEED.0.get()).as_ref() else {
            return null_mut();
        };
        if count == 1 && names.is_null() {
            let feeder = *decoder.cast::<Pointer>().add(state.slot);
            match feed_one(feeder, *arguments) {
                Some(Fed::Messages(messages)) => return messages.release(),
                Some(Fed::Rest(read)) => {
                    let take = state.take.clone();
                    let given = [decoder, *arguments, read.pointer()];
                    return call(&take, given.as_ptr(), 3, null_mut());
                }
                Some(Fed::Nothing) => {}
                None => {
                    (api().PyErr_NoMemory)();
                    return null_mut();
                }
            }
        }
        let fallback = state.fallback.clone();
        let more = if names.is_null() {
            0
        } else {
            (api().PyTuple_Size)(names)
        };
        let all = (0..(1 + count + more).unsigned_abs()).map(|index| match index {
            0 => decoder,
            _ => *arguments.add(index - 1),
        });
        let Ok(given) = collect(all) else {
            (api().PyErr_NoMemory)();
            return null_mut();
        };
        let count = 1 + count.unsigned_abs();
        call(&fallback, given.as_ptr(), count, names)
    }
}

/// Calls a function with `count` positional arguments and one keyword argument for each of `names`. Returns the result; null if the
/// function raised an exception.
///
/// `PyObject_Vectorcall` does the same, but CPython 3.10 does not export this function.
///
/// # Safety
///
/// `names` must be null or a tuple of strings. `arguments` must have `count` positional arguments, then one for each name. All arguments
/// must be alive.
pub unsafe fn call(
    function: &Object,
    arguments: *const Pointer,
    count: usize,
    names: Pointer,
) -> Pointer {
    // SAFETY: see `api`; the caller guarantees the rest.
    unsafe {
        if names.is_null() {
            return (api().PyObject_VectorcallDict)(
                function.pointer(),
                arguments,
                count,
                null_mut(),
            );
        }
        let Some(keywords) = Object::owned((api().PyDict_New)()) else {
            (api().PyErr_NoMemory)();
            return null_mut();
        };
        for index in 0..(api().PyTuple_Size)(names) {
            let name = (api().PyTuple_GetItem)(names, index);
            let value = *arguments.add(count + index.unsigned_abs());
            if (api().PyDict_SetItem)(keywords.pointer(), name, value) < 0 {
                return null_mut();
            }
        }
        (api().PyObject_VectorcallDict)(function.pointer(), arguments, count, keywords.pointer())
    }
}

/// Feeds a chunk to the line buffer of `feeder`. Returns [`Fed::Nothing`] if the fallback must take the chunk, and `None` if memory runs
/// out.
///
/// # Safety
///
/// `feeder` must be alive or null, and `chunk` must be alive.
#[inline]
unsafe fn feed_one(feeder: Pointer, chunk: Pointer) -> Option<Fed> {
    // SAFETY: the caller guarantees that both objects are alive. A capsule named `FEEDER` owns a `Feed`, which owns its state.
    unsafe {
        if feeder.is_null() || class_of(feeder) != api().PyCapsule_Type {
            return Some(Fed::Nothing);
        }
        // A garbage collection may run code that replaces the attribute. This reference keeps the capsule alive.
        let feeder = Object::borrowed(feeder);
        let Some(feed) = value_of::<Feed>(feeder.pointer(), FEEDER).as_ref() else {
            (api().PyErr_Clear)();
            return Some(Fed::Nothing);
        };
        let (handle, state) = (feed.handle, &*feed.state);
        with_reader(
            state,
            || Some(Fed::Nothing),
            |work| match bytes_of(chunk) {
                Some(data) => feed::feed(handle, state, work, data),
                None => with_bytes(chunk, |data| feed::feed(handle, state, work, data))
                    .unwrap_or_else(|| {
                        // The fallback raises an exception with a clearer text.
                        (api().PyErr_Clear)();
                        Some(Fed::Nothing)
                    }),
            },
        )
    }
}

/// `decode(line)`.
unsafe extern "C" fn decode(
    _: Pointer,
    arguments: *const Pointer,
    count: Size,
    names: Pointer,
) -> Pointer {
    // SAFETY: CPython calls this with `count` live positional arguments, then one live argument for each of `names`.
    unsafe {
        let Some(DecodeState { reader, fallback }) = (*DECODE.0.get()).as_ref() else {
            return null_mut();
        };
        if let (Some(reader), 1, true) = (reader, count, names.is_null()) {
            let reader = reader.clone();
            if let Some(message) = read_one(state_of(reader.pointer()), *arguments) {
                return message.release();
            }
        }
        let fallback = fallback.clone();
        call(&fallback, arguments, count.unsigned_abs(), names)
    }
}
