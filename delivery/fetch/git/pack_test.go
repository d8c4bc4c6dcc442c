package git

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/fetch/pack"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// rawPack writes packs that git would not write.
type rawPack struct {
	*testing.T
	text  bytes.Buffer
	count uint32
	// unpacking unpacks it for a tenant.
	unpacking *packs
	tenant    string
}

func newRawPack(t *testing.T) *rawPack {
	p := &rawPack{T: t, unpacking: &packs{}}
	p.text.WriteString("PACK\x00\x00\x00\x02\x00\x00\x00\x00")
	return p
}

func (p *rawPack) blob(content []byte) plumbing.Hash {
	p.Helper()
	if err := pack.Append(&p.text, plumbing.BlobObject, content); err != nil {
		p.Fatal(err)
	}
	p.count++
	return plumbing.ComputeHash(plumbing.BlobObject, content)
}

// difference adds a delta that copies the first length bytes of another object: the one named to, or the first one.
func (p *rawPack) difference(kind plumbing.ObjectType, to plumbing.Hash, size, length int) {
	p.Helper()
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(size)), uint64(length))
	for offset := 0; offset < length; {
		n := min(length-offset, 0xffffff)
		delta = append(delta, 0xff, byte(offset), byte(offset>>8), byte(offset>>16), byte(offset>>24), byte(n), byte(n>>8), byte(n>>16))
		offset += n
	}
	back := p.text.Len() - headerBytes
	p.text.Write([]byte{byte(kind)<<4 | 0x80 | byte(len(delta)&0xf), byte(len(delta) >> 4)})
	if kind == plumbing.REFDeltaObject {
		p.text.Write(to[:])
	} else {
		p.text.Write(distance(back))
	}
	squeeze := zlib.NewWriter(&p.text)
	if _, err := squeeze.Write(delta); err != nil {
		p.Fatal(err)
	}
	if err := squeeze.Close(); err != nil {
		p.Fatal(err)
	}
	p.count++
}

// distance encodes how far back a base object is, as packs do.
func distance(n int) []byte {
	out := []byte{byte(n & 0x7f)}
	for n >>= 7; n > 0; n >>= 7 {
		n--
		out = append([]byte{byte(n&0x7f) | 0x80}, out...)
	}
	return out
}

// again repeats what add has written.
func (p *rawPack) again(times int, add func()) {
	from := p.text.Len()
	add()
	entry := bytes.Clone(p.text.Bytes()[from:])
	p.text.Write(bytes.Repeat(entry, times-1))
	p.count += uint32(times - 1)
}

// headerBytes begin a pack.
const headerBytes = 12

// add puts the pack into a new store, and returns its size and the processor time that this took: what else the machine does does not count.
func (p *rawPack) add(lower func(*limits)) (size int, took time.Duration, err error) {
	p.Helper()
	text := p.text.Bytes()
	binary.BigEndian.PutUint32(text[8:], p.count)
	sum := sha1.Sum(text)
	text = append(text, sum[:]...)
	dir, limits := filepath.Join(p.TempDir(), "store"), defaultLimits()
	if err := os.MkdirAll(filepath.Join(dir, packFolder), 0o700); err != nil {
		p.Fatal(err)
	}
	lower(&limits)
	g, err := openGeneration(dir, limits, p.unpacking)
	if err != nil {
		p.Fatal(err)
	}
	began := p.used()
	err = g.addPack(onBehalfOf(p.Context(), p.tenant), bytes.NewReader(text), "commit")
	return len(text), p.used() - began, err
}

// used is the processor time of this process so far.
func (p *rawPack) used() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		p.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func untouched(*limits) {}

// TestASmallPackThatStandsForGigabytesIsRefused: some kilobytes of deltas stand for 18 GiB, and naming them means rebuilding each.
func TestASmallPackThatStandsForGigabytesIsRefused(t *testing.T) {
	const base = 30 * limit.MiB
	p := newRawPack(t)
	hash := p.blob(make([]byte, base))
	for i := range 600 {
		p.difference(plumbing.OFSDeltaObject, hash, base, base-i)
	}
	size, took, err := p.add(untouched)
	t.Logf("%d bytes, refused after %s", size, took)
	sources.WantError(t, err, failure.ErrTooLarge, "what the objects of the commit's pack inflate to, together, is larger than the limit of 1 GiB")
	if took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestTheInflatedSizeOfAPackIsBoundedForEachTenant by its limits, and for a Repository by the same.
func TestTheInflatedSizeOfAPackIsBoundedForEachTenant(t *testing.T) {
	const refused = "is larger than the limit of 1 MiB: take large files out of Git. " +
		"An administrator of the cluster allows more with spec.limits.packBytes of the Tenant"
	unpack := func(tenant string) error {
		p := newRawPack(t)
		p.tenant = tenant
		p.unpacking.limitOf = func(name string) int64 { return map[string]int64{"acme": limit.MiB, "other": 3 * limit.MiB}[name] }
		p.blob(make([]byte, 2*limit.MiB))
		_, _, err := p.add(untouched)
		return err
	}
	sources.WantError(t, unpack("acme"), failure.ErrTooLarge, refused)
	sources.WantError(t, unpack(budget.OfRepository("acme")), failure.ErrTooLarge, refused)
	sources.WantError(t, unpack("other"), nil, "")
}

// TestTheSameObjectManyTimes: a delta to an object that the pack has many times is resolved once.
func TestTheSameObjectManyTimes(t *testing.T) {
	const many = 60_000
	p := newRawPack(t)
	var hash plumbing.Hash
	p.again(many, func() { hash = p.blob([]byte("abc")) })
	p.again(many, func() { p.difference(plumbing.REFDeltaObject, hash, 3, 2) })
	size, took, err := p.add(untouched)
	if t.Logf("%d bytes, unpacked in %s", size, took); err != nil {
		t.Error(err)
	}
	few := newRawPack(t)
	few.again(many/10, func() { hash = few.blob([]byte("abc")) })
	few.again(many/10, func() { few.difference(plumbing.REFDeltaObject, hash, 3, 2) })
	_, base, err := few.add(untouched)
	if err != nil {
		t.Error(err)
	}
	// Otherwise ten times as many take a hundred times as long.
	if t.Logf("a tenth in %s", base); took > 40*base {
		t.Errorf("it took %s, and a tenth of it %s", took, base)
	}
}
