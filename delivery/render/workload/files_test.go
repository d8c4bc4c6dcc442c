package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/internal/testenv/rendering"
)

func files(content map[string]string) fstest.MapFS {
	folder := fstest.MapFS{}
	for name, text := range content {
		folder[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return folder
}

func TestUnusableConfigFilesAreExplained(t *testing.T) {
	many := map[string]string{}
	for n := range maxConfigFiles + 1 {
		many[fmt.Sprintf("conf/%d", n)] = ""
	}
	half := strings.Repeat("a", maxConfigBytes/2)
	link := files(nil)
	link["conf"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("/etc")}
	tests := map[string]struct {
		folder fs.FS
		paths  []string
		want   string
		kind   error
	}{
		"missing":      {folder: files(nil), paths: []string{"conf"}, want: "spec.image.configFiles[0]: conf: not in the repository", kind: fs.ErrNotExist},
		"empty folder": {folder: files(map[string]string{"conf/deep/a": ""}), paths: []string{"conf"}, want: "spec.image.configFiles[0]: conf: holds no files; those of folders in it are not taken"},
		"a link":       {folder: link, paths: []string{"conf"}, want: "spec.image.configFiles[0]: conf: is a symbolic link; only files and folders of the repository are read"},
		"one file too large": {folder: files(map[string]string{"a": half + half + "a"}), paths: []string{"a"}, kind: render.ErrTooLarge,
			want: "spec.image.configFiles[0]: a: has 1048577 bytes; a file may have 1048576: too large"},
		"too large together": {folder: files(map[string]string{"a": half, "b": half, "c": "!"}), paths: []string{"a", "b", "c"}, kind: render.ErrTooLarge,
			want: "spec.image.configFiles[2]: c: with it the config files have 1048577 bytes; together they may have 1048576, as a ConfigMap: put large files into the image or a volume: too large"},
		"too many": {folder: files(many), paths: []string{"conf"}, kind: render.ErrTooLarge, want: "spec.image.configFiles[0]: an app may have 1000 config files: too large"},
		"one key for two": {folder: files(map[string]string{"a/b": "", "a_b": ""}), paths: []string{"a/b", "a_b"},
			want: `spec.image.configFiles[1]: "a/b" and "a_b" would have the same key "a_b" in the ConfigMap: rename one`},
		"no key": {folder: files(map[string]string{"..a": ""}), paths: []string{"..a"}, want: `spec.image.configFiles[0]: "..a": cannot be the key of a ConfigMap: must not start with '..'`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var entries []v1alpha1.ImageFiles
			for n, path := range tc.paths {
				entries = append(entries, v1alpha1.ImageFiles{Path: path, MountPath: fmt.Sprintf("/mnt/%d", n)})
			}
			_, err := readConfigFiles(entries, tc.folder)
			rendering.WantError(t, err, tc.want)
			if tc.kind != nil && !errors.Is(err, tc.kind) {
				t.Errorf("%v is not %v", err, tc.kind)
			}
		})
	}
}

func TestConfigFilesThatJustFit(t *testing.T) {
	half := strings.Repeat("a", maxConfigBytes/2)
	entries := []v1alpha1.ImageFiles{{Path: "conf", MountPath: "/a"}, {Path: "conf/b", MountPath: "/b"}}
	c, err := readConfigFiles(entries, files(map[string]string{"conf/a": half, "conf/b": half}))
	if err != nil {
		t.Fatal(err)
	}
	if _, kept := c.content["conf_b"]; !kept || len(c.content) != 2 || len(c.items) != 3 {
		t.Errorf("%d files at %d places", len(c.content), len(c.items))
	}
}

// TestAKeyIsTheNameOfTheFile, so that people find it in the ConfigMap.
func TestAKeyIsTheNameOfTheFile(t *testing.T) {
	c, err := readConfigFiles([]v1alpha1.ImageFiles{{Path: ".", MountPath: "/a"}}, files(map[string]string{"aZ-0.9Az": "1", "a b~c": "2"}))
	if err != nil || string(c.content["aZ-0.9Az"]) != "1" || string(c.content["a_b_c"]) != "2" {
		t.Errorf("%v: %v", err, c)
	}
}

// The digest changes with every content and name, so that the pods do.
func TestConfigDigestChangesWithTheFiles(t *testing.T) {
	seen := map[string]string{}
	for name, content := range map[string]map[string]string{
		"base": {"conf/a": "1", "conf/b": "2"}, "content": {"conf/a": "1", "conf/b": "3"}, "name": {"conf/a": "1", "conf/c": "2"},
		"moved": {"conf/a": "12", "conf/b": ""}, "fewer": {"conf/a": "1"}, "app.yaml": {"conf/a": "1", "conf/b": "", "conf/app.yaml": ""},
	} {
		c, err := readConfigFiles([]v1alpha1.ImageFiles{{Path: "conf", MountPath: "/a"}}, files(content))
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[c.digest]; twice {
			t.Errorf("%s and %s have the digest %s", name, other, c.digest)
		}
		seen[c.digest] = name
	}
}

func TestTheAppsOwnFileIsNoConfig(t *testing.T) {
	c, err := readConfigFiles([]v1alpha1.ImageFiles{{Path: ".", MountPath: "/a"}}, files(map[string]string{"app.yaml": "kind: App", "a": "1"}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"a": []byte("1")}, c.content); diff != "" {
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

// A Job's name follows what it says and nothing else.
func TestJobNameChangesWithTheSpec(t *testing.T) {
	const manifest = `{metadata: {name: migrate}, spec: {image: {reference: a:1, %s}}}`
	nameOf := func(more string, settings Settings) string {
		app := rendering.App(t, fmt.Sprintf(manifest, more))
		objects, err := Render(app, settings)
		if err != nil {
			t.Fatal(err)
		}
		NameJob(app, objects)
		return objects[len(objects)-1].GetName()
	}
	first := nameOf("job: {}", Settings{})
	if again := nameOf("job: {}", Settings{}); again != first {
		t.Errorf("the same Job is named %s and %s", first, again)
	}
	for name, other := range map[string]string{
		"args":      nameOf("job: {}, args: [x]", Settings{}),
		"reference": nameOf("job: {}", Settings{Reference: "a:1@sha256:" + strings.Repeat("0", 64)}),
		"settings":  nameOf("job: {backoffLimit: 1}", Settings{}),
	} {
		if other == first || !strings.HasPrefix(other, "migrate-") || len(other) != len("migrate-")+8 {
			t.Errorf("with another %s it is named %s, before %s", name, other, first)
		}
	}
}

func TestTLSOfAHostIsRefusedBehindAGateway(t *testing.T) {
	with := rendering.App(t, `{spec: {hosts: [{host: a.example.com, tlsSecretRef: {name: tls}}], image: {reference: a, ports: [{name: http, port: 80}]}}}`)
	_, err := Render(with, Settings{Gateway: GatewayOf("infra/public")})
	rendering.WantError(t, err, "spec.hosts[0]: tlsSecretRef is not for this platform, whose Gateway infra/public has the certificates: leave it out")
}
