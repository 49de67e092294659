//! Names: from the program's to Python's, in one place.
//!
//! A name of the program becomes one of Python here, and only this file knows which names Python, PyTorch and
//! the emitted file need for themselves. Members keep their names in any case, because these are the keys of
//! weights in files: what cannot be an attribute is registered under its name and read by it
//! ([`is_attribute`]).

use crate::emit::program::name::bounded;

/// Keywords, soft ones included.
const KEYWORDS: &[&str] = &[
    "False", "None", "True", "_", "and", "as", "assert", "async", "await", "break", "case", "class",
    "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "match", "nonlocal", "not", "or", "pass", "raise", "return", "try", "type",
    "while", "with", "yield",
];

/// Functions and types of Python that emitted files use, and the variables `self` and `reset` of their
/// methods.
const BUILTINS: &[&str] = &[
    "bool",
    "callable",
    "enumerate",
    "float",
    "getattr",
    "int",
    "isinstance",
    "len",
    "list",
    "max",
    "min",
    "object",
    "print",
    "property",
    "range",
    "reset",
    "self",
    "str",
    "sum",
    "super",
    "tuple",
    "zip",
];

/// Modules and names that emitted files import.
const IMPORTS: &[&str] = &[
    "Any",
    "Callable",
    "F",
    "NamedTuple",
    "Tensor",
    "annotations",
    "cast",
    "dataclass",
    "math",
    "nn",
    "partial",
    "torch",
];

/// Classes of the file that are not modules of the program, and variables of bodies.
const OWN: &[&str] = &["Config", "Model", "Outputs", "config"];

/// Exceptions and types that a class of that name would hide from readers.
const CLASSES: &[&str] = &[
    "ArithmeticError",
    "AssertionError",
    "AttributeError",
    "BaseException",
    "BufferError",
    "EOFError",
    "Ellipsis",
    "EnvironmentError",
    "Exception",
    "GeneratorExit",
    "IOError",
    "ImportError",
    "IndexError",
    "KeyError",
    "KeyboardInterrupt",
    "LookupError",
    "MemoryError",
    "NameError",
    "NotImplemented",
    "OSError",
    "OverflowError",
    "RuntimeError",
    "StopIteration",
    "SyntaxError",
    "SystemError",
    "SystemExit",
    "TypeError",
    "UnicodeError",
    "ValueError",
    "Warning",
    "ZeroDivisionError",
];

/// Attributes of `nn.Module` that a member of that name would hide, and those of the emitted model.
const ATTRIBUTES: &[&str] = &[
    "T_destination",
    "add_module",
    "apply",
    "bfloat16",
    "buffers",
    "call_super_init",
    "children",
    "compile",
    "config",
    "cpu",
    "cuda",
    "decode",
    "double",
    "dump_patches",
    "encode",
    "eval",
    "extra_repr",
    "float",
    "forward",
    "get_buffer",
    "get_extra_state",
    "get_parameter",
    "get_submodule",
    "half",
    "init_weights",
    "ipu",
    "load_state_dict",
    "modules",
    "mtia",
    "named_buffers",
    "named_children",
    "named_modules",
    "named_parameters",
    "new_cache",
    "parameters",
    "register_backward_hook",
    "register_buffer",
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_load_state_dict_post_hook",
    "register_load_state_dict_pre_hook",
    "register_module",
    "register_parameter",
    "register_state_dict_post_hook",
    "register_state_dict_pre_hook",
    "requires_grad_",
    "reset_parameters",
    "set_extra_state",
    "set_submodule",
    "share_memory",
    "stacks",
    "state_dict",
    "to",
    "to_empty",
    "train",
    "training",
    "type",
    "xpu",
    "zero_grad",
];

/// What `nn.Module` sets on every module, so that no member can have the name.
const UNUSABLE: &[&str] = &["training"];

/// File names that Windows keeps for devices.
const DEVICES: &[&str] = &["aux", "con", "nul", "prn"];

/// The modules of Python 3.11 to 3.14 (`sys.stdlib_module_names`). A file of such a name hides the module from
/// everything that is imported in its folder, and torch imports most of them.
const STANDARD_MODULES: &str = "abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop \
    base64 bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs \
    codeop collections colorsys compileall compression concurrent configparser contextlib contextvars \
    copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest \
    email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib \
    functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http \
    idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache \
    locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt \
    multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os \
    ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath \
    pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re \
    readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil \
    signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants \
    sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig \
    syslog tabnanny tarfile telnetlib tempfile termios test textwrap this threading time timeit tkinter \
    token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata \
    unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml \
    xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// What torch and transformers import from other packages, and these two.
const OTHER_MODULES: &str = "filelock fsspec huggingface_hub jinja2 markupsafe mpmath networkx numpy packaging peft regex \
    requests safetensors sympy tokenizers torch tqdm transformers triton typing_extensions yaml";

/// A variable: a name that Python or the file needs gets an underscore at its end, and a name without a
/// letter begins with `value`.
pub fn variable(name: &str) -> String {
    // Within a class, Python puts the class's name before a name that begins with two underscores.
    if name.starts_with("__") || name.chars().all(|c| c == '_' || c.is_ascii_digit()) {
        return format!("value{name}");
    }
    if is_reserved(name) { format!("{name}_") } else { name.to_owned() }
}

/// Whether a variable or function of that name would hide what the file needs.
pub fn is_reserved(name: &str) -> bool {
    [KEYWORDS, BUILTINS, IMPORTS, OWN].iter().any(|list| list.contains(&name))
}

/// Whether a class of that name would hide what the file needs.
pub fn is_reserved_class(name: &str) -> bool {
    name.len() < 2 || is_reserved(name) || CLASSES.contains(&name)
}

/// Whether a member of that name can be an attribute of its module.
pub fn is_attribute(name: &str) -> bool {
    // `nn.Module` keeps its own state under names that begin with an underscore (`_modules`, `_buffers`).
    !KEYWORDS.contains(&name) && !ATTRIBUTES.contains(&name) && !name.starts_with('_')
}

/// Whether no member can have that name, as `nn.Module` sets an attribute of it.
pub fn is_unusable(name: &str) -> bool {
    UNUSABLE.contains(&name)
}

/// A field of `Config`.
// Fields are read as `config.NAME`, so they hide nothing.
pub fn field(name: &str) -> String {
    if KEYWORDS.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// The name of a file or module for a spec: `qwen2.5-0.5b` → `qwen2_5_0_5b`.
pub fn file(name: &str) -> String {
    let mut out: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    while out.contains("__") {
        out = out.replace("__", "_");
    }
    out.truncate(out.trim_end_matches('_').len());
    // Windows takes `com1` to `com9` and `lpt1` to `lpt9` for devices, whatever the ending of the file is.
    let device = out.strip_suffix(|c: char| c.is_ascii_digit()).unwrap_or(&out);
    let mut modules = STANDARD_MODULES.split(' ').chain(OTHER_MODULES.split(' '));
    let is_reserved = [KEYWORDS, DEVICES].iter().any(|list| list.contains(&out.as_str()))
        || matches!(device, "com" | "lpt")
        || modules.any(|module| module == out);
    if is_reserved || !out.starts_with(|c: char| c.is_ascii_lowercase()) {
        out = format!("model_{}", out.trim_start_matches('_')).trim_end_matches('_').to_owned();
    }
    bounded(out)
}
