package pack

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/lru"
)

// Questions is how many questions a process may ask about one pack: several for each object if the pack is much larger than the kept
// blocks.
const Questions = 1_000_000

// order is the input of a process. It requests the pack itself.
type order struct {
	Limits Limits
	// Size of the pack in bytes.
	Size int64
}

// outcome is the answer of a process: the objects as offset, CRC-32 and name, and the names of the bases, or an error.
type outcome struct {
	Objects, Bases []byte   `json:",omitempty"`
	Err            *problem `json:",omitempty"`
}

// problem is an error of Read as it is sent to another process.
type problem struct {
	Text string
	// TooLarge: the error is an ErrTooLarge. OfTenant: the tenant's limit packBytes was exceeded.
	TooLarge, OfTenant bool
}

const entryBytes = 8 + 4 + 20

// Function is the name of Evaluate.
const Function = "pack"

// Evaluate reads a pack. It is the function of the sandboxed process. ask requests parts of the pack and objects of the store. Errors of
// the pack are in the answer; an error of Evaluate means that the input does not come from this package.
func Evaluate(input []byte, ask func([]byte) ([]byte, error), note func(string)) ([]byte, error) {
	var o order
	if err := json.Unmarshal(input, &o); err != nil {
		return nil, fmt.Errorf("reading what pack to read: %w", err)
	}
	note("the commit's pack")
	from := &remotePack{ask: ask, size: o.Size, blocks: lru.New[int64, []byte](keptBlocks, nil)}
	contents, err := Read(io.NewSectionReader(from, 0, o.Size), o.Limits, from)
	if err != nil {
		return json.Marshal(outcome{Err: problemOf(err)})
	}
	out := outcome{Objects: make([]byte, 0, len(contents.Objects)*entryBytes)}
	for _, e := range contents.Objects {
		out.Objects = binary.BigEndian.AppendUint64(out.Objects, e.Offset)
		out.Objects = binary.BigEndian.AppendUint32(out.Objects, e.CRC32)
		out.Objects = append(out.Objects, e.Hash[:]...)
	}
	for _, base := range contents.Bases {
		out.Bases = append(out.Bases, base[:]...)
	}
	return json.Marshal(out)
}

func problemOf(err error) *problem {
	return &problem{Text: err.Error(), TooLarge: errors.Is(err, failure.ErrTooLarge), OfTenant: errors.As(err, new(*budget.Exceeded))}
}

func (p *problem) error() error {
	switch {
	case p.OfTenant:
		return failure.Because(failure.ErrTooLarge, &budget.Exceeded{Field: budget.PackBytes}, "%s", p.Text)
	case p.TooLarge:
		return failure.New(failure.ErrTooLarge, "%s", p.Text)
	}
	return errors.New(p.Text)
}

// contentsOf decodes an answer about a pack of the given size.
func contentsOf(answer []byte, size int64) (*Contents, error) {
	var out outcome
	if err := json.Unmarshal(answer, &out); err != nil {
		return nil, fmt.Errorf("%w: reading the answer: %w", ErrUnfit, err)
	}
	if out.Err != nil {
		return nil, out.Err.error()
	}
	if len(out.Objects)%entryBytes != 0 || len(out.Bases)%len(plumbing.Hash{}) != 0 {
		return nil, fmt.Errorf("%w: the answer is cut off", ErrUnfit)
	}
	contents := &Contents{Objects: make([]idxfile.Entry, 0, len(out.Objects)/entryBytes)}
	for text := out.Objects; len(text) > 0; text = text[entryBytes:] {
		e := idxfile.Entry{Offset: binary.BigEndian.Uint64(text), CRC32: binary.BigEndian.Uint32(text[8:]), Hash: plumbing.Hash(text[12:entryBytes])}
		if e.Offset >= uint64(size) { // not negative
			return nil, fmt.Errorf("%w: the answer is about another pack", ErrUnfit)
		}
		contents.Objects = append(contents.Objects, e)
	}
	for text := out.Bases; len(text) > 0; text = text[len(plumbing.Hash{}):] {
		contents.Bases = append(contents.Bases, plumbing.Hash(text[:len(plumbing.Hash{})]))
	}
	return contents, nil
}

// The questions: bytes of the pack, by the number of the block; the size of an object of the store, and the object itself, by its name. The
// answers: the bytes; the size; a byte for the kind, followed by the content.
const (
	askBlock byte = iota + 1
	askSize
	askObject
)

const (
	// blockBytes is how much of a pack is requested at once.
	blockBytes = 64 * limit.KiB
	// keptBlocks is how many blocks are in memory: 16 MiB, which is all of most packs.
	keptBlocks = 256
)

// remotePack is a pack in another process, with the store to which the pack belongs.
type remotePack struct {
	ask    func([]byte) ([]byte, error)
	size   int64
	blocks *lru.Cache[int64, []byte]
}

// ReadAt implements io.ReaderAt.
func (a *remotePack) ReadAt(p []byte, offset int64) (n int, err error) {
	for n < len(p) && offset < a.size {
		block, err := a.block(offset / blockBytes)
		if err != nil {
			return n, err
		}
		within := offset % blockBytes
		if within >= int64(len(block)) {
			return n, io.ErrUnexpectedEOF
		}
		copied := copy(p[n:], block[within:])
		n, offset = n+copied, offset+int64(copied)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (a *remotePack) block(number int64) ([]byte, error) {
	if block, there := a.blocks.Get(number); there {
		return block, nil
	}
	block, err := a.ask(binary.BigEndian.AppendUint64([]byte{askBlock}, uint64(number))) // not negative
	if err == nil {
		a.blocks.Add(number, block)
	}
	return block, err
}

// Size implements Store.
func (a *remotePack) Size(hash plumbing.Hash) (int64, error) {
	answer, err := a.ask(append([]byte{askSize}, hash[:]...))
	if err != nil {
		return 0, err
	}
	size, n := binary.Varint(answer)
	if n <= 0 {
		return 0, errQuestion
	}
	return size, nil
}

// Object implements Store.
func (a *remotePack) Object(hash plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	answer, err := a.ask(append([]byte{askObject}, hash[:]...))
	if err != nil {
		return plumbing.InvalidObject, nil, err
	}
	if len(answer) == 0 {
		return plumbing.InvalidObject, nil, errQuestion
	}
	return plumbing.ObjectType(answer[0]), answer[1:], nil // a kind
}

var errQuestion = errors.New("the question is none about a pack")

// answers answers the questions of one process.
type answers struct {
	pack  io.ReaderAt
	store Store
}

func (a answers) answer(question []byte) ([]byte, error) {
	switch {
	case len(question) == 1+8 && question[0] == askBlock:
		number := binary.BigEndian.Uint64(question[1:])
		if number > 1<<32 {
			return nil, errQuestion
		}
		block := make([]byte, blockBytes)
		n, err := a.pack.ReadAt(block, int64(number)*blockBytes) // bounded above
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return block[:n], err
	case len(question) == 1+len(plumbing.Hash{}) && question[0] == askSize:
		size, err := a.store.Size(plumbing.Hash(question[1:]))
		return binary.AppendVarint(nil, size), err
	case len(question) == 1+len(plumbing.Hash{}) && question[0] == askObject:
		kind, content, err := a.store.Object(plumbing.Hash(question[1:]))
		return append([]byte{byte(kind)}, content...), err // a kind
	}
	return nil, errQuestion
}
