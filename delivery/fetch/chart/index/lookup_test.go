package index

import (
	"archive/zip"
	"bytes"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// kept writes an index to disk.
func kept(t *testing.T, index io.Reader, from Stamp) (path string, err error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "index.zip")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	return path, Write(file, index, from, 16*limit.KiB)
}

func TestTheStampOfAnIndexIsKeptWithIt(t *testing.T) {
	const index = "entries:\n  web:\n  - version: 1.0.0\n"
	for name, tc := range map[string]struct{ stamp, want Stamp }{
		"both":      {Stamp{ETag: `"a"`, Modified: "Mon"}, Stamp{ETag: `"a"`, Modified: "Mon"}},
		"none":      {},
		"too large": {Stamp{ETag: strings.Repeat("x", maxStamp)}, Stamp{}},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := kept(t, strings.NewReader(index), tc.stamp)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, StampOf(path)); diff != "" {
				t.Error(diff)
			}
			if versions, err := LookUp(path, "web", limit.KiB); err != nil || len(versions) != 1 {
				t.Errorf("got %v, %v", versions, err)
			}
		})
	}
	if diff := cmp.Diff(Stamp{}, StampOf(filepath.Join(t.TempDir(), "none"))); diff != "" {
		t.Errorf("of no index: %s", diff)
	}
}

func TestADamagedIndexIsRemovedToBeDownloadedAgain(t *testing.T) {
	whole, err := kept(t, strings.NewReader("entries:\n  web:\n  - version: 1.0.0\n    digest: "+strings.Repeat("ab", 500)+"\n"), Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	flipped := append([]byte(nil), text...)
	flipped[40] ^= 0xff
	for name, damaged := range map[string][]byte{"cut off": text[:len(text)-10], "empty": {}, "flipped": flipped} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "index.zip")
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := LookUp(path, "web", 16*limit.KiB)
			var ours *failure.Error
			if err == nil || errors.As(err, &ours) || !strings.Contains(err.Error(), "which is downloaded again") {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it is left: %v", err)
			}
		})
	}
}

// TestADamagedLineIsNoInvalidChart: a chart whose lines cannot be read and do not have their checksum is damaged; one with the right checksum
// is invalid at its source, so that another download would not help.
func TestADamagedLineIsNoInvalidChart(t *testing.T) {
	const line = "version: [\n"
	for name, c := range map[string]struct {
		checksum uint32
		kept     bool
	}{
		"damaged": {1, false},
		"invalid": {crc32.ChecksumIEEE([]byte(line)), true},
	} {
		t.Run(name, func(t *testing.T) {
			var archive bytes.Buffer
			w := zip.NewWriter(&archive)
			part, err := w.CreateRaw(&zip.FileHeader{
				Name: "web", Method: zip.Store, CRC32: c.checksum, CompressedSize64: uint64(len(line)), UncompressedSize64: uint64(len(line)),
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := part.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "index.zip")
			if err := os.WriteFile(path, archive.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = LookUp(path, "web", limit.KiB)
			if ours := new(failure.Error); err == nil || errors.As(err, &ours) != c.kept {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(path); (err == nil) != c.kept {
				t.Errorf("the index is kept: %v, want %t", err, c.kept)
			}
		})
	}
}

func TestAnIndexWithOneInvalidChartIsKept(t *testing.T) {
	path, err := kept(t, strings.NewReader("entries:\n  web:\n    keywords: [a]\n  ok:\n  - version: 1.0.0\n"), Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = LookUp(path, "web", limit.KiB)
	sources.WantError(t, err, failure.ErrInvalid, "the repository's index.yaml cannot be read")
	if versions, err := LookUp(path, "ok", limit.KiB); err != nil || len(versions) != 1 {
		t.Errorf("got %v, %v", versions, err)
	}
	if versions, err := LookUp(path, "none", limit.KiB); err != nil || versions != nil {
		t.Errorf("of a chart that is not listed: %v, %v", versions, err)
	}
}

func TestAnErrorOfTheServerIsPassedOn(t *testing.T) {
	broken := errors.New("connection reset")
	for name, begin := range map[string]string{
		"at once": "", "in lines": "entries:\n  web:\n" + strings.Repeat("  - version: 1.0.0\n", 5000), "in JSON": `{"entries":{"web":[{"version":"1.0.0"},`,
		"in another layout": "entries: {\n" + strings.Repeat(" ", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kept(t, io.MultiReader(strings.NewReader(begin), iotest.ErrReader(broken)), Stamp{})
			if !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnIndexInAnotherLayoutHasALimitOfSize(t *testing.T) {
	at := func(size int) string {
		const begin, end = "entries: {web: [{version: 1.0.0}]} #", "\n"
		return begin + strings.Repeat("x", size-len(begin)-len(end)) + end
	}
	path, err := kept(t, strings.NewReader(at(16*limit.KiB)), Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	if versions, err := LookUp(path, "web", limit.KiB); err != nil || len(versions) != 1 {
		t.Errorf("at the limit: %v, %v", versions, err)
	}
	_, err = kept(t, strings.NewReader(at(16*limit.KiB+1)), Stamp{})
	sources.WantError(t, err, failure.ErrTooLarge, "an index.yaml that is not laid out as Helm writes it is larger than the limit of 16 KiB")
	_, err = kept(t, strings.NewReader(""), Stamp{})
	sources.WantError(t, err, failure.ErrInvalid, "cannot be read")
}

// TestLinesWrittenBeforeAnotherLayoutIsDetectedAreDropped: the first charts look as Helm writes them.
func TestLinesWrittenBeforeAnotherLayoutIsDetectedAreDropped(t *testing.T) {
	path, err := kept(t, strings.NewReader("entries:\n  a:\n  - version: 1.0.0\n  web: [{version: 2.0.0}]\n"), Stamp{ETag: "x"})
	if err != nil {
		t.Fatal(err)
	}
	for chart, want := range map[string]string{"a": "1.0.0", "web": "2.0.0"} {
		versions, err := LookUp(path, chart, limit.KiB)
		if err != nil || len(versions) != 1 || versions[0].Name != want {
			t.Errorf("%s: %v, %v", chart, versions, err)
		}
	}
	if StampOf(path).ETag != "x" {
		t.Error("the stamp is lost")
	}
	file, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if len(file.File) != 2 {
		t.Errorf("%d charts are in the file, want 2", len(file.File))
	}
}

func TestChartsWithImpossibleNamesAreLeftOut(t *testing.T) {
	path, err := kept(t, strings.NewReader(`{"entries":{"../web":[{"version":"1.0.0"}],"web":[{"version":"2.0.0"}]}}`), Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	if versions, err := LookUp(path, "../web", limit.KiB); versions != nil || err != nil {
		t.Errorf("got %v, %v", versions, err)
	}
	if versions, err := LookUp(path, "web", limit.KiB); len(versions) != 1 || err != nil {
		t.Errorf("got %v, %v", versions, err)
	}
}

func TestAChartMayHaveAsManyVersionsAsTheLimit(t *testing.T) {
	path, err := kept(t, strings.NewReader("entries:\n  web:\n"+strings.Repeat("  - version: 1\n", maxIndexVersions)), Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	if versions, err := LookUp(path, "web", limit.KiB); len(versions) != maxIndexVersions || err != nil {
		t.Errorf("got %d, %v", len(versions), err)
	}
}
