/* The native engine: one pass over the text of traceEvents, to columns of numbers.
 *
 * C rather than Cython: nothing to install but a compiler, one file that the sanitizers see as
 * it is, and the stable ABI. It accepts an event only if it is valid JSON of the usual types;
 * at anything else it stops in front of the event and says so, and the Python engine decides.
 * So both engines agree, and nothing here has to be lenient.
 *
 * Strings and odd scalars become ids of a dictionary of raw JSON texts, which Python decodes
 * once for each; arguments that are kept as they are become ids of another. Times become integer
 * nanoseconds digit by digit, rounded half to even.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { MORE, CLOSED, DOUBTFUL, FULL };                /* why a scan ended */
enum { WHOLE = 0, SHORT = -1, ODD = -2, NO_ROOM = -3, LAST = 1 }; /* what came of a value */

enum {
    HAS_STREAM = 1,
    HAS_CORRELATION = 2,
    HAS_EXTERNAL = 4,
    HAS_FRACTION = 8,
    UNFINISHED = 16,
    IS_CALL = 32, /* of a collective: it has a name or sizes of one */
    HAS_SEQUENCE = 64,
    HAS_FORWARD = 128
};

#define MISSING INT64_MIN
#define TOO_LONG -2           /* in place of the id of a raw text: it is there, but not kept */
#define MOST_DEPTH 60         /* of values that are skipped */
#define MOST_DIGITS 16        /* of whole microseconds */
#define LATEST 4000000000000000 /* us after 1970, in 2096: times 1000 it fits int64 */
#define LONGEST_NUMBER 18     /* of a scalar that is kept as text */
#define MOST_KINDS 4096       /* pairs of phase and category */
#define LONGEST_RAW 4096      /* bytes of an argument that is kept as it is; as in decode.py */
#define EXPECTED_BITS 12      /* of the places where the next raw text is remembered */

/* -- the dictionary: every text once ------------------------------------------------------- */

typedef struct {
    uint64_t hash;
    uint32_t start, length;
} Text;

typedef struct {
    Text *texts;       /* by id */
    uint32_t *slots;   /* id + 1 by hash, open addressing; 0 is free */
    char *bytes;
    uint32_t num_texts, most_texts, num_slots, num_bytes, most_bytes;
    uint64_t seed;
} Dictionary;

typedef struct {
    int32_t phase, category;
} Kind;

/* Fields whose text is mostly that of the event before. */
enum { PHASE, CATEGORY, PROCESS, THREAD, DEVICE, NUM_STEADY };

/* Arguments that are kept as they are. */
enum { DIMS, DIMS_OLD, TYPES, CONCRETE, NUM_RAW };

typedef struct {
    Dictionary texts;
    Dictionary raws;            /* apart, as Python does not decode these */
    int32_t recent[NUM_STEADY]; /* the last id of each steady field, or -1 */
    int32_t recent_raw[NUM_RAW];
    int32_t expected[NUM_RAW][1 << EXPECTED_BITS]; /* by what came before; -1 is nothing */
    Kind kinds[MOST_KINDS];
    int32_t num_kinds;
} Scanner;

/* Both halves of a product: without the seed, nobody can tell which texts will collide. */
static inline uint64_t
mixed(uint64_t one, uint64_t other)
{
#if defined(__SIZEOF_INT128__)
    __extension__ unsigned __int128 product = (unsigned __int128)one * other;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t product = one * other;
    return product ^ (product >> 32);
#endif
}

static uint64_t
hash_of(uint64_t seed, const char *text, size_t length)
{
    uint64_t hash = seed ^ length, word;
    for (; length >= 8; text += 8, length -= 8) {
        memcpy(&word, text, 8);
        hash = mixed(hash ^ word, seed | 1);
    }
    word = 0;
    memcpy(&word, text, length);
    return mixed(hash ^ word, seed | 1);
}

/* Return the id of a text, or NO_ROOM. */
static int32_t
id_of(Dictionary *texts, const char *text, size_t length)
{
    uint64_t hash = hash_of(texts->seed, text, length);
    uint32_t mask = texts->num_slots - 1, slot = (uint32_t)hash & mask, id;
    while ((id = texts->slots[slot]) != 0) {
        Text *known = &texts->texts[id - 1];
        if (known->hash == hash && known->length == length
            && memcmp(texts->bytes + known->start, text, length) == 0)
            return (int32_t)(id - 1);
        slot = (slot + 1) & mask;
    }
    if (texts->num_texts == texts->most_texts || length > texts->most_bytes - texts->num_bytes)
        return NO_ROOM;
    memcpy(texts->bytes + texts->num_bytes, text, length);
    texts->texts[texts->num_texts] = (Text){hash, texts->num_bytes, (uint32_t)length};
    texts->num_bytes += (uint32_t)length;
    texts->slots[slot] = ++texts->num_texts;
    return (int32_t)(texts->num_texts - 1);
}

/* -- reading JSON: every function moves `at` behind what it read, or says why it did not ----- */

typedef struct {
    const char *at, *end;
} Reader;

static inline void
skip_blanks(Reader *in)
{
    const char *at = in->at, *end = in->end;
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
        at++;
    in->at = at;
}

static int
is_hex(char c)
{
    return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
}

/* Skip an escape; surrogates are left to Python, which knows what half a pair is. */
static int
skip_escape(Reader *in)
{
    const char *at = in->at + 1;
    if (at >= in->end)
        return SHORT;
    if (*at != 'u') {
        if (*at == 0 || strchr("\"\\/bfnrt", *at) == NULL)
            return ODD;
        in->at = at + 1;
        return WHOLE;
    }
    if (in->end - at < 5)
        return SHORT;
    for (int i = 1; i < 5; i++)
        if (!is_hex(at[i]))
            return ODD;
    if ((at[1] | 32) == 'd' && at[2] >= '8')
        return ODD;
    in->at = at + 5;
    return WHOLE;
}

/* Skip a character of more than one byte, if it is valid UTF-8. */
static int
skip_wide(Reader *in)
{
    const unsigned char *at = (const unsigned char *)in->at;
    ptrdiff_t left = in->end - in->at;
    int length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
    if (at[0] < 0xC2 || at[0] > 0xF4)
        return ODD;
    if (left < length)
        return SHORT;
    for (int i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80)
            return ODD;
    if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F)
        || (at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F))
        return ODD;
    in->at += length;
    return WHOLE;
}

/* Skip what is plain in a string: neither quote, backslash, control nor beyond ASCII. */
static inline const char *
skip_plain(const char *at, const char *end)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
    const __m128i blank = _mm_set1_epi8(' ');
    while (end - at >= 16) {
        __m128i some = _mm_loadu_si128((const __m128i *)at);
        /* signed: bytes beyond ASCII are less than a blank too */
        __m128i odd = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(some, quote),
                                                _mm_cmpeq_epi8(some, slash)),
                                   _mm_cmplt_epi8(some, blank));
        int hits = _mm_movemask_epi8(odd);
        if (hits)
            return at + __builtin_ctz((unsigned)hits);
        at += 16;
    }
#endif
    while (at < end && *at != '"' && *at != '\\' && (signed char)*at >= ' ')
        at++;
    return at;
}

/* Skip a string whose opening quote `at` is on. */
static int
skip_string(Reader *in)
{
    int result;
    in->at++;
    for (;;) {
        in->at = skip_plain(in->at, in->end);
        if (in->at >= in->end)
            return SHORT;
        if (*in->at == '"') {
            in->at++;
            return WHOLE;
        }
        if (*in->at == '\\')
            result = skip_escape(in);
        else if ((signed char)*in->at < 0)
            result = skip_wide(in);
        else
            return ODD;
        if (result != WHOLE)
            return result;
    }
}

static inline int
is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int
skip_digits(Reader *in)
{
    const char *at = in->at;
    while (at < in->end && is_digit(*at))
        at++;
    if (at == in->end)
        return SHORT; /* it may go on */
    if (at == in->at)
        return ODD;
    in->at = at;
    return WHOLE;
}

static int
skip_number(Reader *in)
{
    int result;
    if (!is_digit(*in->at) && *in->at != '-')
        return ODD;
    if (*in->at == '-')
        in->at++;
    if (in->end - in->at < 2)
        return SHORT;
    if (in->at[0] == '0' && is_digit(in->at[1]))
        return ODD;
    if ((result = skip_digits(in)) != WHOLE)
        return result;
    if (*in->at == '.') {
        in->at++;
        if ((result = skip_digits(in)) != WHOLE)
            return result;
    }
    if ((*in->at | 32) == 'e') {
        in->at++;
        if (in->at < in->end && (*in->at == '+' || *in->at == '-'))
            in->at++;
        return skip_digits(in);
    }
    return WHOLE;
}

static int
skip_word(Reader *in, const char *word, ptrdiff_t length)
{
    ptrdiff_t left = in->end - in->at;
    if (memcmp(in->at, word, (size_t)(left < length ? left : length)) != 0)
        return ODD;
    if (left < length)
        return SHORT;
    in->at += length;
    return WHOLE;
}

static int
skip_scalar(Reader *in)
{
    switch (*in->at) {
    case '"':
        return skip_string(in);
    case 't':
        return skip_word(in, "true", 4);
    case 'f':
        return skip_word(in, "false", 5);
    case 'n':
        return skip_word(in, "null", 4);
    default:
        return skip_number(in);
    }
}

/* Skip a key and its colon; say where the key's text is, and that it has no escape in it. */
static int
read_key(Reader *in, const char **key, size_t *length)
{
    if (in->at >= in->end)
        return SHORT;
    if (*in->at != '"')
        return ODD;
    const char *start = in->at + 1;
    const char *close = skip_plain(start, in->end);
    if (close >= in->end)
        return SHORT;
    if (*close != '"')
        return ODD;
    *key = start;
    *length = (size_t)(close - start);
    in->at = close + 1;
    skip_blanks(in);
    if (in->at >= in->end)
        return SHORT;
    if (*in->at != ':')
        return ODD;
    in->at++;
    skip_blanks(in);
    return in->at < in->end ? WHOLE : SHORT;
}

/* Behind a value in an object, go on to the next key; or, if it was the LAST, behind the brace. */
static inline int
next_member(Reader *in)
{
    skip_blanks(in);
    if (in->at >= in->end)
        return SHORT;
    if (*in->at == '}') {
        in->at++;
        return LAST;
    }
    if (*in->at != ',')
        return ODD;
    in->at++;
    skip_blanks(in);
    return WHOLE;
}

/* Skip an array or object, however nested up to a bound. */
static int
skip_nested(Reader *in)
{
    uint64_t objects = 0; /* which of the open ones are objects, the innermost the lowest bit */
    int depth = 0, result;
    const char *key;
    size_t length;
    for (;;) {
        /* at the beginning of a value */
        if (in->at >= in->end)
            return SHORT;
        if (*in->at == '{' || *in->at == '[') {
            int is_object = *in->at == '{';
            if (++depth > MOST_DEPTH)
                return ODD;
            objects = objects << 1 | (uint64_t)is_object;
            in->at++;
            skip_blanks(in);
            if (in->at >= in->end)
                return SHORT;
            if (*in->at != (is_object ? '}' : ']')) {
                if (is_object && (result = read_key(in, &key, &length)) != WHOLE)
                    return result;
                continue;
            }
        }
        else if ((result = skip_scalar(in)) != WHOLE)
            return result;
        else if (depth == 0)
            return WHOLE;
        else {
            skip_blanks(in);
            if (in->at >= in->end)
                return SHORT;
        }
        /* behind a value: close what closes, or go on behind a comma */
        while (*in->at == (objects & 1 ? '}' : ']')) {
            in->at++;
            objects >>= 1;
            if (--depth == 0)
                return WHOLE;
            skip_blanks(in);
            if (in->at >= in->end)
                return SHORT;
        }
        if (*in->at != ',')
            return ODD;
        in->at++;
        skip_blanks(in);
        if (objects & 1) {
            if ((result = read_key(in, &key, &length)) != WHOLE)
                return result;
        }
    }
}

/* -- values of known keys ------------------------------------------------------------------ */

/* Read microseconds as nanoseconds, if they are written as nearly all are: with three decimals
 * at most, and no sign. */
static inline int
read_usual_time(Reader *in, int64_t *value, uint8_t *flags)
{
    const char *start = in->at, *at = start, *end = in->end;
    int64_t number = 0, part = 0, unit = 100;
    int has_fraction = 0;
    while (at < end && is_digit(*at) && at - start < MOST_DIGITS)
        number = number * 10 + (*at++ - '0');
    if (at == start || at == end || number >= LATEST || (*start == '0' && at - start > 1))
        return 0;
    if (*at == '.') {
        const char *point = at++;
        for (; at < end && is_digit(*at) && unit; unit /= 10)
            part += (*at++ - '0') * unit;
        if (at - point < 2 || at == end)
            return 0;
        has_fraction = at - point > 2 || part != 0; /* ".0" is whole to the Python engine */
    }
    if (is_digit(*at) || *at == '.' || (*at | 32) == 'e')
        return 0;
    *value = number * 1000 + part;
    *flags |= has_fraction ? HAS_FRACTION : 0;
    in->at = at;
    return 1;
}

/* Read microseconds as nanoseconds. Null is MISSING; what is no plain number is odd. */
static int
read_time(Reader *in, int64_t *value, uint8_t *flags)
{
    const char *start = in->at;
    if (read_usual_time(in, value, flags))
        return WHOLE;
    if (*start == 'n') {
        *value = MISSING;
        return skip_word(in, "null", 4);
    }
    int result = skip_number(in);
    if (result != WHOLE)
        return result;
    const char *at = start, *end = in->at;
    int64_t number = 0;
    int is_negative = *at == '-', digits = 0;
    at += is_negative;
    for (; at < end && is_digit(*at); at++, digits++)
        if (digits < MOST_DIGITS)
            number = number * 10 + (*at - '0');
    if (digits > MOST_DIGITS || number >= LATEST || (at < end && *at != '.'))
        return ODD; /* too large, or with an exponent */
    int64_t part = 0, unit = 100;
    int num_part = 0, above_half = 0, is_half = 0;
    if (at < end) {
        for (at++; at < end && is_digit(*at); at++, num_part++) {
            int digit = *at - '0';
            if (num_part < 3) {
                part += digit * unit;
                unit /= 10;
            }
            else if (num_part == 3) {
                above_half = digit > 5;
                is_half = digit == 5;
            }
            else if (is_half && digit)
                above_half = 1;
        }
        if (at < end)
            return ODD; /* an exponent */
    }
    number = number * 1000 + part;
    if (above_half || (is_half && (number & 1)))
        number++;
    /* as the Python engine sees it: ".0" is whole, and so is what more digits add up to */
    if (num_part > 3 ? number % 1000 != 0 : num_part > 1 || part != 0)
        *flags |= HAS_FRACTION;
    *value = is_negative ? -number : number;
    return WHOLE;
}

enum { NOTHING, AN_ID, A_NUMBER }; /* what stands where an id may be; the last is negative */

/* Read an id up to 2^64-1. */
static int
read_unsigned(Reader *in, uint64_t *value, int *state)
{
    const char *start = in->at;
    if (*start == 'n') {
        *state = NOTHING;
        return skip_word(in, "null", 4);
    }
    int result = skip_number(in);
    if (result != WHOLE)
        return result;
    const char *at = start + (*start == '-');
    if (in->at - at > 20)
        return ODD;
    uint64_t number = 0;
    for (; at < in->at; at++) {
        if (!is_digit(*at) || number > UINT64_MAX / 10)
            return ODD;
        uint64_t digit = (uint64_t)(*at - '0');
        if (number * 10 > UINT64_MAX - digit)
            return ODD;
        number = number * 10 + digit;
    }
    if (*start == '-' && number > INT64_MAX)
        return ODD;
    *value = number;
    *state = *start == '-' && number ? A_NUMBER : AN_ID;
    return WHOLE;
}

/* Is this the text that stands here, all of it? No whole value but a number is the beginning of
 * another one. */
static inline int
stands_here(const Dictionary *texts, int32_t id, const Reader *in)
{
    const Text *known = &texts->texts[id];
    if (in->end - in->at <= (ptrdiff_t)known->length
        || memcmp(in->at, texts->bytes + known->start, known->length) != 0)
        return 0;
    char last = in->at[known->length - 1], next = in->at[known->length];
    return !(is_digit(last) && (is_digit(next) || next == '.' || (next | 32) == 'e'));
}

/* Read a value that has the text that its field had last, if so. */
static inline int
read_recent(const Scanner *self, Reader *in, int32_t *id, int field)
{
    int32_t recent = self->recent[field];
    if (recent < 0 || !stands_here(&self->texts, recent, in))
        return 0;
    in->at += self->texts.texts[recent].length;
    *id = recent;
    return 1;
}

/* Read a string as the id of its text, quotes and all; null is -1. */
static int
read_text(Scanner *self, Reader *in, int32_t *id, int may_be_null)
{
    const char *start = in->at;
    int result;
    if (*start == 'n' && may_be_null) {
        *id = -1;
        return skip_word(in, "null", 4);
    }
    if (*start != '"')
        return ODD;
    if ((result = skip_string(in)) != WHOLE)
        return result;
    *id = id_of(&self->texts, start, (size_t)(in->at - start));
    return *id < 0 ? NO_ROOM : WHOLE;
}

/* The same of a field whose text is mostly that of the event before. */
static inline int
read_steady_text(Scanner *self, Reader *in, int32_t *id, int field, int may_be_null)
{
    if (read_recent(self, in, id, field))
        return WHOLE;
    int result = read_text(self, in, id, may_be_null);
    self->recent[field] = *id;
    return result;
}

/* Read any scalar as the id of its text; null is -1. */
static int
read_any_label(Scanner *self, Reader *in, int32_t *id)
{
    const char *start = in->at;
    int result;
    if (*start == '"' || *start == 'n')
        return read_text(self, in, id, 1);
    if ((result = skip_scalar(in)) != WHOLE)
        return result;
    if (in->at - start > LONGEST_NUMBER)
        return ODD;
    if (is_digit(in->at[-1])) /* a number: with an exponent it may be past a double */
        for (const char *at = start; at < in->at; at++)
            if ((*at | 32) == 'e')
                return ODD;
    *id = id_of(&self->texts, start, (size_t)(in->at - start));
    return *id < 0 ? NO_ROOM : WHOLE;
}

static inline int
read_label(Scanner *self, Reader *in, int32_t *id, int field)
{
    if (read_recent(self, in, id, field))
        return WHOLE;
    int result = read_any_label(self, in, id);
    self->recent[field] = *id;
    return result;
}

/* Read any value as the id of its text; null is -1, and what is too long is TOO_LONG.
 *
 * Training repeats itself: which text comes next can be told from the name of the event and the
 * text that came last, and then nothing has to be parsed. */
static int
read_raw(Scanner *self, Reader *in, int32_t *id, int field, int32_t name)
{
    const char *start = in->at;
    uint32_t past = (uint32_t)name * 31 + (uint32_t)self->recent_raw[field];
    int32_t *expected = &self->expected[field][past * 2654435761u >> (32 - EXPECTED_BITS)];
    if (*expected >= 0 && stands_here(&self->raws, *expected, in)) {
        in->at += self->raws.texts[*expected].length;
        self->recent_raw[field] = *id = *expected;
        return WHOLE;
    }
    *id = -1;
    if (*start == 'n')
        return skip_word(in, "null", 4);
    int result = skip_nested(in);
    if (result != WHOLE)
        return result;
    if (in->at - start > LONGEST_RAW) {
        *id = TOO_LONG;
        return WHOLE;
    }
    *id = id_of(&self->raws, start, (size_t)(in->at - start));
    if (*id < 0)
        return NO_ROOM;
    self->recent_raw[field] = *expected = *id;
    return WHOLE;
}

/* -- events -------------------------------------------------------------------------------- */

typedef struct {
    int64_t *ts, *dur;
    uint64_t *stream, *correlation, *external, *sequence, *forward;
    int32_t *kind, *name, *pid, *tid, *device, *collective, *dims, *types, *concrete;
    uint8_t *flags;
    int64_t *args; /* where the arguments begin and end, two numbers a row */
} Columns;

#define IS(word) (length == sizeof(word) - 1 && memcmp(key, word, sizeof(word) - 1) == 0)

typedef struct {
    int32_t phase, category, name, pid, tid, device, collective;
    int32_t raw[NUM_RAW];
    int64_t ts, dur;
    uint64_t stream, correlation, external, external_old, sequence, forward;
    int has_stream, has_correlation, has_external, has_external_old, has_sequence, has_forward;
    int is_unfinished, has_sent, has_sent_old;
    uint8_t ts_flags, dur_flags;
    int64_t args_start, args_end;
} Event;

static void
forget_args(Event *event)
{
    event->device = event->collective = -1;
    for (int field = 0; field < NUM_RAW; field++)
        event->raw[field] = -1;
    event->has_stream = event->has_correlation = event->has_sequence = event->has_forward = 0;
    event->has_external = event->has_external_old = event->is_unfinished = 0;
    event->has_sent = event->has_sent_old = 0;
}

static int
read_argument(Scanner *self, Reader *in, Event *event, const char *key, size_t length)
{
    switch (length) {
    case 6:
        if (IS("stream"))
            return read_unsigned(in, &event->stream, &event->has_stream);
        if (IS("device"))
            return read_label(self, in, &event->device, DEVICE);
        break;
    case 8:
        if (IS("finished")) {
            event->is_unfinished = *in->at == 'f';
            return skip_scalar(in);
        }
        break;
    case 10:
        if (IS("Input Dims"))
            return read_raw(self, in, &event->raw[DIMS], DIMS, event->name);
        if (IS("Input dims"))
            return read_raw(self, in, &event->raw[DIMS_OLD], DIMS_OLD, event->name);
        if (IS("Input type"))
            return read_raw(self, in, &event->raw[TYPES], TYPES, event->name);
        break;
    case 11:
        if (IS("correlation"))
            return read_unsigned(in, &event->correlation, &event->has_correlation);
        if (IS("External id"))
            return read_unsigned(in, &event->external, &event->has_external);
        if (IS("external id"))
            return read_unsigned(in, &event->external_old, &event->has_external_old);
        if (IS("In msg size"))
            event->has_sent_old = *in->at != 'n';
        break;
    case 13:
        if (IS("Fwd thread id"))
            return read_unsigned(in, &event->forward, &event->has_forward);
        if (IS("In msg nelems"))
            event->has_sent = *in->at != 'n';
        break;
    case 15:
        if (IS("Collective name"))
            return read_text(self, in, &event->collective, 1);
        if (IS("Concrete Inputs"))
            return read_raw(self, in, &event->raw[CONCRETE], CONCRETE, event->name);
        if (IS("Sequence number"))
            return read_unsigned(in, &event->sequence, &event->has_sequence);
        break;
    }
    return skip_nested(in);
}

static int
read_args(Scanner *self, Reader *in, Event *event)
{
    const char *key;
    size_t length;
    int result;
    forget_args(event);
    if (*in->at == 'n')
        return skip_word(in, "null", 4);
    if (*in->at != '{')
        return ODD;
    in->at++;
    skip_blanks(in);
    if (in->at < in->end && *in->at == '}') {
        in->at++;
        return WHOLE;
    }
    for (;;) {
        if ((result = read_key(in, &key, &length)) != WHOLE)
            return result;
        if ((result = read_argument(self, in, event, key, length)) != WHOLE)
            return result;
        if ((result = next_member(in)) != WHOLE)
            return result == LAST ? WHOLE : result;
    }
}

static int
read_field(Scanner *self, Reader *in, Event *event, const char *key, size_t length)
{
    switch (length) {
    case 2:
        if (IS("ph"))
            return read_steady_text(self, in, &event->phase, PHASE, 0);
        if (IS("ts")) {
            event->ts_flags = 0;
            return read_time(in, &event->ts, &event->ts_flags);
        }
        break;
    case 3:
        if (IS("cat"))
            return read_steady_text(self, in, &event->category, CATEGORY, 1);
        if (IS("pid"))
            return read_label(self, in, &event->pid, PROCESS);
        if (IS("tid"))
            return read_label(self, in, &event->tid, THREAD);
        if (IS("dur")) {
            event->dur_flags = 0;
            return read_time(in, &event->dur, &event->dur_flags);
        }
        break;
    case 4:
        if (IS("name"))
            return read_text(self, in, &event->name, 0);
        if (IS("args"))
            return read_args(self, in, event);
        break;
    }
    return skip_nested(in);
}

/* Without phase, name or category an event is rare, and Python's to judge. */
static int
is_usual(Scanner *self, const Event *event)
{
    if (event->phase < 0 || event->name < 0)
        return 0;
    const Text *phase = &self->texts.texts[event->phase];
    return event->category >= 0
           || !(phase->length == 3 && self->texts.bytes[phase->start + 1] == 'X');
}

/* Read the event whose opening brace `at` is on. */
static int
read_event(Scanner *self, Reader *in, Event *event, const char *text)
{
    const char *key;
    size_t length;
    int result;
    *event = (Event){.phase = -1, .category = -1, .name = -1, .pid = -1, .tid = -1,
                     .ts = MISSING, .dur = MISSING};
    forget_args(event);
    in->at++;
    skip_blanks(in);
    for (;;) {
        if ((result = read_key(in, &key, &length)) != WHOLE)
            return result;
        const char *value = in->at;
        if ((result = read_field(self, in, event, key, length)) != WHOLE)
            return result;
        if (IS("args")) {
            event->args_start = value - text;
            event->args_end = in->at - text;
        }
        if ((result = next_member(in)) == LAST)
            return is_usual(self, event) ? WHOLE : ODD;
        if (result != WHOLE)
            return result;
    }
}

static int32_t
kind_of(Scanner *self, int32_t phase, int32_t category)
{
    for (int32_t kind = 0; kind < self->num_kinds; kind++)
        if (self->kinds[kind].category == category && self->kinds[kind].phase == phase)
            return kind;
    if (self->num_kinds == MOST_KINDS)
        return NO_ROOM;
    self->kinds[self->num_kinds] = (Kind){phase, category};
    return self->num_kinds++;
}

static inline int32_t
kept(int32_t id)
{
    return id == TOO_LONG ? -1 : id;
}

static void
put(Columns *to, Py_ssize_t row, const Event *event, int32_t kind)
{
    uint64_t external = event->has_external ? event->external : event->external_old;
    int has_external = event->has_external ? event->has_external : event->has_external_old;
    int is_call = event->collective >= 0 || event->has_sent || event->has_sent_old;
    int32_t dims = event->raw[event->raw[DIMS] == -1 ? DIMS_OLD : DIMS];
    to->ts[row] = event->ts;
    to->dur[row] = event->dur;
    to->stream[row] = event->stream;
    to->correlation[row] = event->correlation;
    to->external[row] = external;
    to->sequence[row] = event->sequence;
    to->forward[row] = event->forward;
    to->kind[row] = kind;
    to->name[row] = event->name;
    to->pid[row] = event->pid;
    to->tid[row] = event->tid;
    to->device[row] = event->device;
    to->collective[row] = event->collective;
    to->dims[row] = kept(dims);
    to->types[row] = kept(event->raw[TYPES]);
    to->concrete[row] = kept(event->raw[CONCRETE]);
    to->args[2 * row] = event->args_start;
    to->args[2 * row + 1] = event->args_end;
    to->flags[row] = (uint8_t)((event->has_stream == AN_ID ? HAS_STREAM : 0)
                               | (event->has_correlation == AN_ID ? HAS_CORRELATION : 0)
                               | (has_external == AN_ID ? HAS_EXTERNAL : 0)
                               | event->ts_flags | event->dur_flags
                               | (event->is_unfinished ? UNFINISHED : 0)
                               | (is_call ? IS_CALL : 0)
                               | (event->has_sequence == AN_ID ? HAS_SEQUENCE : 0)
                               | (event->has_forward == AN_ID ? HAS_FORWARD : 0));
}

/* -- the Python type ----------------------------------------------------------------------- */

#define NUM_COLUMNS 18

typedef struct {
    PyObject_HEAD
    Scanner scanner;
    Columns to;
    Py_buffer buffers[NUM_COLUMNS];
    int num_buffers;
    Py_ssize_t capacity;
    int is_busy;
} ScannerObject;

typedef struct {
    Py_ssize_t row, last, at;
    int status;
} Progress;

/* Read elements from `at` on, each to a row, as long as all is well. */
static Progress
scan_events(ScannerObject *self, const char *text, Py_ssize_t size, Py_ssize_t at, Py_ssize_t row)
{
    Reader in = {text + at, text + size};
    Progress done = {row, at, at, MORE};
    for (;;) {
        Event event;
        skip_blanks(&in);
        if (in.at >= in.end)
            return done;
        if (*in.at != '{') {
            done.status = DOUBTFUL;
            return done;
        }
        if (done.row == self->capacity) {
            done.status = FULL;
            return done;
        }
        int result = read_event(&self->scanner, &in, &event, text);
        int32_t kind = -1;
        if (result == WHOLE) {
            skip_blanks(&in);
            if (in.at >= in.end)
                result = SHORT;
            else if (*in.at != ',' && *in.at != ']')
                result = ODD;
            else if ((kind = kind_of(&self->scanner, event.phase, event.category)) < 0)
                result = NO_ROOM;
        }
        if (result != WHOLE) {
            done.status = result == SHORT ? MORE : result == ODD ? DOUBTFUL : FULL;
            return done;
        }
        put(&self->to, done.row++, &event, kind);
        done.last = done.at;
        if (*in.at == ']') {
            done.at = in.at - text;
            done.status = CLOSED;
            return done;
        }
        done.at = ++in.at - text;
    }
}

static void
forget_recent(Scanner *scanner)
{
    for (int field = 0; field < NUM_STEADY; field++)
        scanner->recent[field] = -1;
    memset(scanner->recent_raw, -1, sizeof scanner->recent_raw);
    memset(scanner->expected, -1, sizeof scanner->expected);
}

static PyObject *
scanner_scan(PyObject *object, PyObject *args)
{
    ScannerObject *self = (ScannerObject *)object;
    PyObject *bytes;
    Py_ssize_t at, row, size;
    char *text;
    if (!PyArg_ParseTuple(args, "Snn", &bytes, &at, &row))
        return NULL;
    if (PyBytes_AsStringAndSize(bytes, &text, &size) < 0)
        return NULL;
    if (at < 0 || at > size || row < 0 || row > self->capacity) {
        PyErr_SetString(PyExc_ValueError, "no such place in the text or the columns");
        return NULL;
    }
    if (self->is_busy) {
        PyErr_SetString(PyExc_RuntimeError, "another thread scans with this scanner");
        return NULL;
    }
    Progress done;
    self->is_busy = 1;
    Py_INCREF(bytes);
    Py_BEGIN_ALLOW_THREADS
    done = scan_events(self, text, size, at, row);
    Py_END_ALLOW_THREADS
    Py_DECREF(bytes);
    self->is_busy = 0;
    return Py_BuildValue("innn", done.status, done.row, done.at, done.last);
}

static PyObject *
texts_from(const Dictionary *texts, PyObject *args)
{
    Py_ssize_t first;
    if (!PyArg_ParseTuple(args, "n", &first))
        return NULL;
    if (first < 0 || first > texts->num_texts) {
        PyErr_SetString(PyExc_ValueError, "no such text");
        return NULL;
    }
    PyObject *found = PyList_New(texts->num_texts - first);
    for (Py_ssize_t id = first; found != NULL && id < texts->num_texts; id++) {
        const Text *known = &texts->texts[id];
        PyObject *text = PyBytes_FromStringAndSize(texts->bytes + known->start, known->length);
        if (text == NULL || PyList_SetItem(found, id - first, text) < 0)
            Py_CLEAR(found);
    }
    return found;
}

static PyObject *
scanner_texts(PyObject *object, PyObject *args)
{
    return texts_from(&((ScannerObject *)object)->scanner.texts, args);
}

static PyObject *
scanner_raws(PyObject *object, PyObject *args)
{
    return texts_from(&((ScannerObject *)object)->scanner.raws, args);
}

static PyObject *
scanner_kinds(PyObject *object, PyObject *args)
{
    Scanner *scanner = &((ScannerObject *)object)->scanner;
    Py_ssize_t first;
    if (!PyArg_ParseTuple(args, "n", &first))
        return NULL;
    if (first < 0 || first > scanner->num_kinds) {
        PyErr_SetString(PyExc_ValueError, "no such kind");
        return NULL;
    }
    PyObject *found = PyList_New(scanner->num_kinds - first);
    for (Py_ssize_t kind = first; found != NULL && kind < scanner->num_kinds; kind++) {
        const Kind *known = &scanner->kinds[kind];
        PyObject *pair = Py_BuildValue("ii", known->phase, known->category);
        if (pair == NULL || PyList_SetItem(found, kind - first, pair) < 0)
            Py_CLEAR(found);
    }
    return found;
}

static void
forget_texts(Dictionary *texts)
{
    memset(texts->slots, 0, texts->num_slots * sizeof *texts->slots);
    texts->num_texts = texts->num_bytes = 0;
}

static PyObject *
scanner_clear(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Scanner *scanner = &((ScannerObject *)object)->scanner;
    forget_texts(&scanner->texts);
    forget_texts(&scanner->raws);
    scanner->num_kinds = 0;
    forget_recent(scanner);
    Py_RETURN_NONE;
}

/* In the order in which the constructor takes them: their place, and bytes a row. */
static const struct {
    size_t offset;
    Py_ssize_t row_bytes;
} COLUMNS[NUM_COLUMNS] = {
    {offsetof(Columns, ts), 8},         {offsetof(Columns, dur), 8},
    {offsetof(Columns, stream), 8},     {offsetof(Columns, correlation), 8},
    {offsetof(Columns, external), 8},   {offsetof(Columns, sequence), 8},
    {offsetof(Columns, forward), 8},    {offsetof(Columns, kind), 4},
    {offsetof(Columns, name), 4},       {offsetof(Columns, pid), 4},
    {offsetof(Columns, tid), 4},        {offsetof(Columns, device), 4},
    {offsetof(Columns, collective), 4}, {offsetof(Columns, dims), 4},
    {offsetof(Columns, types), 4},      {offsetof(Columns, concrete), 4},
    {offsetof(Columns, flags), 1},      {offsetof(Columns, args), 16},
};

static int
allocate(Dictionary *texts, Py_ssize_t most_texts, Py_ssize_t most_bytes, uint64_t seed)
{
    texts->seed = seed;
    texts->most_texts = (uint32_t)most_texts;
    texts->most_bytes = (uint32_t)most_bytes;
    texts->num_slots = 16;
    while (texts->num_slots < 2 * texts->most_texts)
        texts->num_slots *= 2;
    texts->texts = PyMem_Malloc((size_t)texts->most_texts * sizeof *texts->texts);
    texts->bytes = PyMem_Malloc((size_t)texts->most_bytes);
    texts->slots = PyMem_Calloc(texts->num_slots, sizeof *texts->slots);
    return texts->texts && texts->bytes && texts->slots ? 0 : -1;
}

static int
take_columns(ScannerObject *self, PyObject *columns)
{
    if (PySequence_Size(columns) != NUM_COLUMNS) {
        PyErr_SetString(PyExc_ValueError, "not the right number of columns");
        return -1;
    }
    for (int i = 0; i < NUM_COLUMNS; i++) {
        PyObject *column = PySequence_GetItem(columns, i);
        if (column == NULL)
            return -1;
        int result = PyObject_GetBuffer(column, &self->buffers[i], PyBUF_WRITABLE);
        Py_DECREF(column);
        if (result < 0)
            return -1;
        self->num_buffers = i + 1;
        if (self->buffers[i].len < self->capacity * COLUMNS[i].row_bytes) {
            PyErr_SetString(PyExc_ValueError, "a column is too short");
            return -1;
        }
        memcpy((char *)&self->to + COLUMNS[i].offset, &self->buffers[i].buf, sizeof(void *));
    }
    return 0;
}

static PyObject *
scanner_new(PyTypeObject *type, PyObject *args, PyObject *Py_UNUSED(keywords))
{
    PyObject *columns;
    Py_ssize_t capacity, most_texts, most_bytes;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "OnnnK", &columns, &capacity, &most_texts, &most_bytes, &seed))
        return NULL;
    if (capacity < 1 || most_texts < 16 || most_bytes < 16 || capacity > 1 << 24
        || most_texts > 1 << 24 || most_bytes > 1 << 28) {
        PyErr_SetString(PyExc_ValueError, "a bound is out of bounds");
        return NULL;
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    ScannerObject *self = (ScannerObject *)alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->capacity = capacity;
    forget_recent(&self->scanner);
    if (allocate(&self->scanner.texts, most_texts, most_bytes, seed) < 0
        || allocate(&self->scanner.raws, most_texts, most_bytes, seed) < 0) {
        PyErr_NoMemory();
        Py_CLEAR(self);
    }
    else if (take_columns(self, columns) < 0)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void
release(Dictionary *texts)
{
    PyMem_Free(texts->texts);
    PyMem_Free(texts->bytes);
    PyMem_Free(texts->slots);
}

static void
scanner_dealloc(PyObject *object)
{
    ScannerObject *self = (ScannerObject *)object;
    PyTypeObject *type = Py_TYPE(object);
    for (int i = 0; i < self->num_buffers; i++)
        PyBuffer_Release(&self->buffers[i]);
    release(&self->scanner.texts);
    release(&self->scanner.raws);
    freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
    free_object(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {
    {"scan", scanner_scan, METH_VARARGS,
     "scan(text, at, row) -> (status, row, at, last): read events to rows from there on"},
    {"texts", scanner_texts, METH_VARARGS, "texts(first) -> the JSON texts from that id on"},
    {"raws", scanner_raws, METH_VARARGS,
     "raws(first) -> the texts of arguments that are kept as they are, from that id on"},
    {"kinds", scanner_kinds, METH_VARARGS,
     "kinds(first) -> pairs of phase and category from that kind on, as ids of texts"},
    {"clear", scanner_clear, METH_NOARGS, "clear(): forget all texts and kinds"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, scanner_new},
    {Py_tp_dealloc, scanner_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_doc, "Scanner(columns, capacity, most_texts, most_bytes, seed)"},
    {0, NULL},
};

static PyType_Spec spec = {
    "traceparse.ingest._scanner.Scanner", sizeof(ScannerObject), 0, Py_TPFLAGS_DEFAULT, slots,
};

static int
fill_module(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&spec);
    if (type == NULL)
        return -1;
    int result = PyModule_AddObjectRef(module, "Scanner", type);
    Py_DECREF(type);
    return result;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, fill_module},
    {0, NULL},
};

static PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "traceparse.ingest._scanner",
    .m_doc = "The native engine's scanner.",
    .m_slots = module_slots,
};

PyMODINIT_FUNC
PyInit__scanner(void)
{
    return PyModuleDef_Init(&module);
}
