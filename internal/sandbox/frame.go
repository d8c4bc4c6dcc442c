package sandbox

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// version of the protocol. Both sides come from the same build, so no other version is supported.
const version = 1

type kind byte

// The kinds of messages. A process sends: ready, with what confines it; note, with the place, first with none when it has read the call;
// question; answer or failure of the call. The parent sends: call; answer or failure of a question.
const (
	ready kind = iota + 1
	call
	note
	question
	answer
	failure
	lastKind = failure
)

// frame is one message: version, kind, length of the head (2 bytes), length of the body (4 bytes), head, body.
type frame struct {
	kind kind
	head string
	body []byte
	// more are further pieces of the body, for writing without a copy.
	more [][]byte
}

const (
	headerBytes = 8
	maxHead     = 4 << 10
	// maxInput is the maximum size of a message from the parent, in bytes. A chart has at most 32 MiB of files.
	maxInput = 64 << 20
)

var errProtocol = errors.New("the message is none of this protocol")

// errTooLong means that a head or body is longer than the reader accepts.
var errTooLong = errors.New("the message is too long")

func (f frame) writeTo(w io.Writer) error {
	if len(f.head) > maxHead {
		f.head = f.head[:maxHead]
	}
	length := len(f.body)
	for _, piece := range f.more {
		length += len(piece)
	}
	if length > maxInput {
		return errTooLong
	}
	header := make([]byte, headerBytes, headerBytes+len(f.head))
	header[0], header[1] = version, byte(f.kind)
	binary.BigEndian.PutUint16(header[2:], uint16(len(f.head))) // at most maxHead
	binary.BigEndian.PutUint32(header[4:], uint32(length))      // at most maxInput
	// The buffer joins small pieces. Large ones bypass it without a copy.
	out := bufio.NewWriter(w)
	for _, piece := range append([][]byte{append(header, f.head...), f.body}, f.more...) {
		if _, err := out.Write(piece); err != nil {
			return err
		}
	}
	return out.Flush()
}

// readFrame reads one message with a body of at most limit bytes. It allocates memory as bytes arrive, not as announced. It returns io.EOF if
// the input ended between two messages.
func readFrame(r io.Reader, limit int) (frame, error) {
	var header [headerBytes]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: kind(header[1])}
	if header[0] != version || f.kind == 0 || f.kind > lastKind {
		return frame{}, fmt.Errorf("%w: version %d, kind %d", errProtocol, header[0], header[1])
	}
	headLength, length := int(binary.BigEndian.Uint16(header[2:])), int64(binary.BigEndian.Uint32(header[4:]))
	if headLength > maxHead || length > int64(limit) {
		return frame{}, errTooLong
	}
	head := make([]byte, headLength)
	if _, err := io.ReadFull(r, head); err != nil {
		return frame{}, unexpected(err)
	}
	f.head = string(head)
	var body bytes.Buffer
	body.Grow(int(min(length, 1<<20)))
	if _, err := io.CopyN(&body, r, length); err != nil {
		return frame{}, unexpected(err)
	}
	f.body = body.Bytes()
	return f, nil
}

// unexpected turns io.EOF within a message into io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
