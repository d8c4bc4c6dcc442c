package folder

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
)

func TestFilesOutsideGitAreReadAsAFolder(t *testing.T) {
	all := FromFS(fstest.MapFS{
		"apps/web/app.yaml":       {Data: []byte("kind: App\n"), Mode: 0o644},
		"apps/web/bin/run":        {Data: []byte("#!"), Mode: 0o755},
		"apps/web/link":           {Data: []byte("app.yaml"), Mode: fs.ModeSymlink | 0o777},
		"apps/web/large":          {Data: make([]byte, DefaultLimits().File+1), Mode: 0o644},
		"apps/web/pipes/a":        {Mode: fs.ModeNamedPipe},
		"apps/other/secrets.yaml": {Data: []byte("a: b\n")},
	})
	web := all.Folder("apps/web")
	for name, want := range map[string]string{"app.yaml": "kind: App\n", "bin/run": "#!"} {
		if got, err := fs.ReadFile(web, name); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if info, err := fs.Stat(web, "bin/run"); err != nil || info.Size() != 2 || info.IsDir() {
		t.Errorf("bin/run is %v, %v", info, err)
	}
	for name, want := range map[string]error{"link": ErrSymlink, "large": failure.ErrTooLarge, "missing": ErrNotExist, "../other/secrets.yaml": fs.ErrInvalid} {
		if got, err := fs.ReadFile(web, name); !errors.Is(err, want) {
			t.Errorf("%s is %q, %v; want %v", name, got, err, want)
		}
	}
	if entries, err := fs.ReadDir(web, "pipes"); err == nil {
		t.Errorf("a folder with a pipe is %v", entries)
	}
	sub, err := all.Folder(".").Sub("apps/web")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := fs.ReadFile(sub, "app.yaml"); err != nil || string(got) != "kind: App\n" {
		t.Errorf("in a folder of the root, app.yaml is %q, %v", got, err)
	}
}
