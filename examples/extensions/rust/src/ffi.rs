//! The leading slots of the function table, as `memrt/api.h` declares them.
//!
//! The table only grows at its end, so a program may declare the slots up to the last slot in use.

use std::ffi::{c_char, c_int, c_void};

/// Status of a call; 0 is success.
pub type Status = c_int;
pub const OK: Status = 0;
pub const ENOMEM: Status = 1;
pub const ABI_MAJOR: u32 = 1;

pub type Dtor = unsafe extern "C" fn(data: *mut c_void, size: usize, info: *mut c_void);

/// Header of a buffer, `memrt_meminfo_t`. Only memrt writes the members.
#[repr(C)]
pub struct MemInfo {
    pub refct: usize,
    pub dtor: Option<Dtor>,
    pub dtor_info: *mut c_void,
    pub data: *mut c_void,
    pub size: usize,
    pub external_allocator: *mut c_void,
    pub policy: u16,
    pub kind: u8,
    pub align_log2: u8,
    pub flags: u32,
    pub lead: u32,
    pub bin: u32,
}

/// Settings of a new buffer, `memrt_new_options_t`.
#[repr(C)]
pub struct NewOptions {
    pub struct_size: usize,
    pub policy: *mut c_void,
    pub alignment: usize,
    pub zeroed: c_int,
    pub readonly: c_int,
    pub dtor: Option<Dtor>,
    pub dtor_info: *mut c_void,
    pub external: *mut c_void,
    pub name: *const c_char,
}

/// The table, `memrt_api_t`, up to the slot `size`.
#[repr(C)]
pub struct Api {
    pub allocate: unsafe extern "C" fn(usize) -> *mut MemInfo,
    pub allocate_external: unsafe extern "C" fn(usize, *mut c_void) -> *mut MemInfo,
    pub manage_memory:
        unsafe extern "C" fn(*mut c_void, unsafe extern "C" fn(*mut c_void)) -> *mut MemInfo,
    pub acquire: unsafe extern "C" fn(*mut MemInfo),
    pub release: unsafe extern "C" fn(*mut MemInfo),
    pub get_data: unsafe extern "C" fn(*mut MemInfo) -> *mut c_void,
    pub struct_size: usize,
    pub abi_major: u32,
    pub abi_minor: u32,
    pub features: u64,
    pub version: *const c_char,
    pub meminfo_new: unsafe extern "C" fn(usize, *const NewOptions, *mut *mut MemInfo) -> Status,
    pub meminfo_adopt:
        unsafe extern "C" fn(*mut c_void, usize, *const NewOptions, *mut *mut MemInfo) -> Status,
    pub try_acquire: unsafe extern "C" fn(*mut MemInfo) -> c_int,
    pub call_dtor: unsafe extern "C" fn(*mut MemInfo),
    pub refcount: unsafe extern "C" fn(*const MemInfo) -> usize,
    pub size: unsafe extern "C" fn(*const MemInfo) -> usize,
}

// Slots never change, and may be called from any thread.
unsafe impl Sync for Api {}

extern "C" {
    pub fn memrt_get_api(abi_major: u32, why: *mut *const c_char) -> *const Api;
}
