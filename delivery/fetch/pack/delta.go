package pack

import (
	"encoding/binary"
	"errors"
	"io"
)

var errDelta = errors.New("a delta in the pack is malformed")

// patch writes the object that results from applying a delta to its base, and nothing if the delta claims more than largest bytes. It holds
// no part of the object in memory: go-git's PatchDelta grows a buffer, which takes up to three times the size of the object. After an
// error, the written bytes are not the object.
//
// Source: "Deltified representation" in gitformat-pack(5).
func patch(into io.Writer, base, delta []byte, largest int64) error {
	of, n := binary.Uvarint(delta)
	if n <= 0 || of != uint64(len(base)) {
		return errDelta
	}
	delta = delta[n:]
	left, n := binary.Uvarint(delta)
	if n <= 0 || left > uint64(max(0, largest)) {
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

// instruction decodes the first instruction of a delta. part is what it adds, from the base or from the delta, and rest has the following
// instructions.
func instruction(base, delta []byte) (part, rest []byte, ok bool) {
	op, delta := delta[0], delta[1:]
	if op < 0x80 {
		if op == 0 || int(op) > len(delta) {
			return nil, nil, false
		}
		return delta[:op], delta[op:], true
	}
	// Four bytes of an offset and three of a size. The bits of op say which of them are present; the others are zero.
	var given [7]byte
	for i := range given {
		if op&(1<<i) == 0 {
			continue
		}
		if len(delta) == 0 {
			return nil, nil, false
		}
		given[i], delta = delta[0], delta[1:]
	}
	offset := int64(binary.LittleEndian.Uint32(given[:4]))
	size := int64(given[4]) | int64(given[5])<<8 | int64(given[6])<<16
	if size == 0 {
		size = 0x10000
	}
	if offset+size > int64(len(base)) {
		return nil, nil, false
	}
	return base[offset : offset+size], delta, true
}
