package pawl

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
	// Not json.Unmarshal, which has no UseNumber: it would turn the 64-bit id
	// in a map[string]any into its neighbour.
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
