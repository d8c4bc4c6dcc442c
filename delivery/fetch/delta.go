package fetch

import (
	"encoding/binary"
	"errors"
	"io"
)

// errDelta says that a difference is not what Git makes.
var errDelta = errors.New("a difference in the pack is malformed")

// patch writes the object that the delta makes of its base, of at most most bytes. It takes no memory: go-git's PatchDelta lets a
// buffer grow, which takes up to three times what the object has. What was written before an error is to be dropped.
//
// Source: "Deltified representation" in gitformat-pack(5).
func patch(into io.Writer, base, delta []byte, most int64) error {
	of, n := binary.Uvarint(delta)
	if n <= 0 || of != uint64(len(base)) {
		return errDelta
	}
	delta = delta[n:]
	left, n := binary.Uvarint(delta)
	if n <= 0 || left > uint64(max(0, most)) {
		return errDelta
	}
	delta = delta[n:]
	for len(delta) > 0 {
		part, rest, ok := instruction(base, delta)
		if !ok || uint64(len(part)) > left {
			return errDelta
		}
		if _, err := into.Write(part); err != nil {
			return err
		}
		left, delta = left-uint64(len(part)), rest
	}
	if left > 0 {
		return errDelta
	}
	return nil
}

// instruction is what the first instruction of a delta adds, of the base or of the delta itself, and the instructions after it.
func instruction(base, delta []byte) (part, rest []byte, ok bool) {
	op, delta := delta[0], delta[1:]
	if op < 0x80 {
		if op == 0 || int(op) > len(delta) {
			return nil, nil, false
		}
		return delta[:op], delta[op:], true
	}
	// The bits of op say which bytes of the offset, four, and of the size, three, are not zero and follow.
	var bytes [7]byte
	for i := range bytes {
		if op&(1<<i) == 0 {
			continue
		}
		if len(delta) == 0 {
			return nil, nil, false
		}
		bytes[i], delta = delta[0], delta[1:]
	}
	offset := int64(binary.LittleEndian.Uint32(bytes[:4]))
	size := int64(bytes[4]) | int64(bytes[5])<<8 | int64(bytes[6])<<16
	if size == 0 {
		size = 0x10000
	}
	if offset+size > int64(len(base)) {
		return nil, nil, false
	}
	return base[offset : offset+size], delta, true
}
