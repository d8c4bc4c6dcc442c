package build

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestAListOfAFolderHasItsSmallManifests: their contents are sent with the list until it has listedBytes of them. Nothing else is read.
func TestAListOfAFolderHasItsSmallManifests(t *testing.T) {
	sized := func(size int) *fstest.MapFile { return &fstest.MapFile{Data: []byte(strings.Repeat("a", size))} }
	nine := fstest.MapFS{}
	for _, n := range strings.Split("123456789", "") {
		nine["app/"+n+".yaml"] = sized(attachedBytes)
	}
	for name, tc := range map[string]struct {
		files fstest.MapFS
		want  []string
	}{
		"manifests":               {fstest.MapFS{"app/a.yaml": sized(1), "app/b.yml": sized(1), "app/c.json": sized(1)}, []string{"a.yaml", "b.yml", "c.json"}},
		"a file that is none":     {fstest.MapFS{"app/README.md": sized(1), "app/a.yaml": sized(1)}, []string{"a.yaml"}},
		"a large one":             {fstest.MapFS{"app/a.yaml": sized(attachedBytes), "app/b.yaml": sized(attachedBytes + 1)}, []string{"a.yaml"}},
		"a symbolic link":         {fstest.MapFS{"app/a.yaml": {Mode: fs.ModeSymlink, Data: []byte("b.yaml")}, "app/b.yaml": sized(1)}, []string{"b.yaml"}},
		"a folder with that name": {fstest.MapFS{"app/a.yaml/b.yaml": sized(1), "app/c.yaml": sized(1)}, []string{"c.yaml"}},
		"more than are sent":      {nine, []string{"1.yaml", "2.yaml", "3.yaml", "4.yaml", "5.yaml", "6.yaml", "7.yaml", "8.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &answers{files: tc.files}
			r := a.folder("app")
			var got []string
			var bytes int64
			for _, file := range r.Files {
				got = append(got, file.Info.Called)
				bytes += int64(len(file.Data))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("files with their contents (-want +got):\n%s", diff)
			}
			entries, err := fs.ReadDir(tc.files, "app")
			if err != nil || len(r.Entries) != len(entries) || r.Err != nil {
				t.Errorf("%d entries, %v, want %d, %v", len(r.Entries), r.Err, len(entries), err)
			}
			if a.bytes != bytes {
				t.Errorf("%d bytes count as read, want %d", a.bytes, bytes)
			}
		})
	}
}
