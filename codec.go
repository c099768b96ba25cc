package pawl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"sync"
)

// Codec turns values into bytes and back. kind is given so that a codec may
// bind ciphertext to it. A Codec must be safe for concurrent use.
//
// Encode must give equal bytes for equal values if Unique is used without a
// Key: the key is then made from them. It must not keep v, and what it returns
// must not change later.
//
// Decode fills v, which is a pointer to a zero value of the type that is
// wanted. It must not keep data, and must not change it: the same bytes go
// into the post-mortem. Its error is permanent: the job is dead, reason
// "undecodable".
//
// The default codec is encoding/json with two differences in Decode. A number
// that lands in an interface is a json.Number, not a float64, so that an
// integer above 2^53 is not rounded. Anything but white space after the value
// is an error. Unknown fields are ignored, as in encoding/json, so that a
// producer may be deployed before its workers.
type Codec interface {
	Encode(kind string, v any) ([]byte, error)
	Decode(kind string, data []byte, v any) error
}

// jsonCodec is the default Codec. The kind is of no use to it.
type jsonCodec struct{}

func (jsonCodec) Encode(_ string, v any) ([]byte, error) { return json.Marshal(v) }

func (jsonCodec) Decode(_ string, data []byte, v any) error {
	if !takesAny(reflect.TypeOf(v)) && json.Unmarshal(data, v) == nil {
		return nil
	}
	// json.Unmarshal has no UseNumber: it would turn the 64-bit id in a
	// map[string]any into its neighbour. Nor has it the errors of below.
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		if err == io.EOF { // the clean end of a stream to a Decoder, but no value to us
			err = fmt.Errorf("json: empty payload: %w", io.ErrUnexpectedEOF)
		}
		return err
	}
	end := dec.InputOffset()
	if rest := bytes.TrimLeft(data[end:], " \t\r\n"); len(rest) > 0 {
		return fmt.Errorf("json: %d bytes after the value, which ends at byte %d", len(rest), end)
	}
	return nil
}

// anyTypes remembers what takesAny has found, by type.
var anyTypes sync.Map

// takesAny reports whether JSON may put a value of its own choice somewhere in a
// value of the type, so that it matters how numbers are read. A Decoder that knows
// how takes longer by half and three times the memory (BenchmarkDecode).
func takesAny(t reflect.Type) bool {
	if known, ok := anyTypes.Load(t); ok {
		return known.(bool)
	}
	found := holdsInterface(t, map[reflect.Type]bool{})
	anyTypes.Store(t, found)
	return found
}

func holdsInterface(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == nil || t.Kind() == reflect.Interface {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return holdsInterface(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if holdsInterface(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}
