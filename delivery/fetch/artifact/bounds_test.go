package artifact

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// TestEachLimitOfAnArchiveIsExact unpacks with a limit that is just met, and with one that is less by one.
func TestEachLimitOfAnArchiveIsExact(t *testing.T) {
	file := func(name string) sources.Entry { return sources.Entry{Name: name, Text: "text"} }
	for name, tc := range map[string]struct {
		entries []sources.Entry
		lower   func(l *limits, by int)
		says    string
	}{
		"a file":      {[]sources.Entry{file("a")}, func(l *limits, by int) { l.unpackedFile = int64(4 - by) }, "the file a of the artifact is larger than the limit of 3 bytes"},
		"files":       {[]sources.Entry{file("a"), file("b/c"), file("b/d")}, func(l *limits, by int) { l.files = 4 - by }, "the number of files and folders in the artifact is over the limit of 3"},
		"depth":       {[]sources.Entry{file("a/b/c")}, func(l *limits, by int) { l.depth = 3 - by }, "the number of folders inside each other in the artifact is over the limit of 2"},
		"a path":      {[]sources.Entry{file("abcdef")}, func(l *limits, by int) { l.path = 6 - by }, "the length in bytes of a path in the artifact is over the limit of 5"},
		"all paths":   {[]sources.Entry{file("a/b"), file("a/c")}, func(l *limits, by int) { l.paths = int64(7 - by) }, "all the paths of the artifact together is larger than the limit of 6 bytes"},
		"a folder":    {[]sources.Entry{{Name: "a/", Kind: tar.TypeDir}, {Name: "a/", Kind: tar.TypeDir}, file("a/b")}, func(l *limits, by int) { l.files = 2 - by }, "the number of files and folders in the artifact is over the limit of 1"},
		"the archive": {[]sources.Entry{file("a")}, func(l *limits, by int) { l.unpacked = int64(4*512 - by) }, "the unpacked artifact is larger than the limit of 2047 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			archive := sources.TarGz(t, tc.entries...)
			met, over := defaultLimits(), defaultLimits()
			tc.lower(&met, 0)
			tc.lower(&over, 1)
			if err := unpack(bytes.NewReader(archive), io.Discard, met); err != nil {
				t.Errorf("what meets the limit: %v", err)
			}
			sources.WantError(t, unpack(bytes.NewReader(archive), io.Discard, over), failure.ErrTooLarge, tc.says)
		})
	}
}

func TestUnpackKeepsFilesUnderCleanNames(t *testing.T) {
	archive := sources.TarGz(t, sources.Entry{Name: "./", Kind: tar.TypeDir},
		sources.Entry{Name: "./b//c", Text: "1"}, sources.Entry{Name: "a/../d", Text: "2"}, sources.Entry{Name: "empty/", Kind: tar.TypeDir}, sources.Entry{Name: "..x", Text: "3"})
	var out bytes.Buffer
	if err := unpack(bytes.NewReader(archive), &out, defaultLimits()); err != nil {
		t.Fatal(err)
	}
	files, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range files.File {
		opened, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(opened)
		got = append(got, fmt.Sprintf("%s %s %s %v", f.Name, text, f.Mode(), err))
	}
	if diff := cmp.Diff([]string{"b/c 1 -r--r--r-- <nil>", "d 2 -r--r--r-- <nil>", "..x 3 -r--r--r-- <nil>"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnIncompleteArchiveIsInvalid(t *testing.T) {
	whole := sources.TarGz(t, sources.Entry{Name: "a", Text: sources.Noise(1, 2000)})
	text, _ := sources.Gzip(t, sources.Noise(1, 2000))
	for name, archive := range map[string][]byte{"empty": nil, "no gzip": []byte("a tar that is not compressed"), "no tar": text, "cut off": whole[:len(whole)/2]} {
		t.Run(name, func(t *testing.T) {
			sources.WantError(t, unpack(bytes.NewReader(archive), io.Discard, defaultLimits()), failure.ErrInvalid, "the artifact is not a whole tar archive compressed with gzip")
		})
	}
}

func TestOnlyArtifactsOfTheNamespaceAreDownloaded(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a", 64)
	store := NewStore(t.TempDir(), nil, "source-controller.*.svc", " Mirror.example ")
	for name, tc := range map[string]struct{ url, digest, says string }{
		"as Flux writes it":        {"http://source-controller.flux-system.svc./gitrepository/acme/app/1.tar.gz", digest, ""},
		"upper case, with a port":  {"https://MIRROR.example:8443/gitrepository/acme/1.tar.gz", digest, ""},
		"another namespace":        {"http://source-controller.flux-system.svc/gitrepository/other/app/1.tar.gz", digest, "its path begins with /<kind>/acme/"},
		"out of the namespace":     {"http://source-controller.flux-system.svc/gitrepository/acme/../other/1.tar.gz", digest, "its path begins with /<kind>/acme/"},
		"out of it, encoded":       {"http://source-controller.flux-system.svc/gitrepository/acme/%2e%2e/other/1.tar.gz", digest, "its path begins with /<kind>/acme/"},
		"a slash that is encoded":  {"http://source-controller.flux-system.svc/gitrepository/acme/a%2fb", digest, "its path begins with /<kind>/acme/"},
		"a namespace in a segment": {"http://source-controller.flux-system.svc/acme/other/acme/1.tar.gz", digest, "its path begins with /<kind>/acme/"},
		"the namespace alone":      {"http://source-controller.flux-system.svc/gitrepository/acme", digest, "its path begins with /<kind>/acme/"},
		"another host":             {"http://evil.example/gitrepository/acme/1.tar.gz", digest, "evil.example is not a host from which artifacts are fetched"},
		"a user that looks like":   {"http://source-controller.flux-system.svc@evil.example/gitrepository/acme/1.tar.gz", digest, "its URL is not of the form http://host/path"},
		"another scheme":           {"ftp://source-controller.flux-system.svc/gitrepository/acme/1.tar.gz", digest, "its URL is not of the form http://host/path"},
		"no host":                  {"http:///gitrepository/acme/1.tar.gz", digest, "its URL is not of the form http://host/path"},
		"no digest":                {"http://mirror.example/gitrepository/acme/1.tar.gz", "", "is not of the form sha256:<64 hexadecimal digits>"},
		"a digest without sha256:": {"http://mirror.example/gitrepository/acme/1.tar.gz", strings.Repeat("a", 64), "is not of the form sha256:"},
		"a path as a digest":       {"http://mirror.example/gitrepository/acme/1.tar.gz", "sha256:../../x", "is not of the form sha256:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := store.artifactURL(Flux{URL: tc.url, Digest: tc.digest, Namespace: "acme"})
			if tc.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			sources.WantError(t, err, failure.ErrInvalid, tc.says)
		})
	}
}

func TestInvalidURLsOfRegistriesAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		source OCI
		path   string
		says   string
	}{
		"a repository":        {OCI{URL: "oci://r.example/team/app/"}, "/team/app", ""},
		"by digest":           {OCI{URL: "oci://r.example/app", Digest: "sha256:" + strings.Repeat("0", 64)}, "/app", ""},
		"another scheme":      {OCI{URL: "https://r.example/app"}, "", "the URL is not of the form oci://host/path"},
		"no host":             {OCI{URL: "oci:///app"}, "", "the URL is not of the form oci://host/path"},
		"credentials":         {OCI{URL: "oci://bot:hunter2@r.example/app"}, "", "the URL holds credentials: move them to a Secret"},
		"a query":             {OCI{URL: "oci://r.example/app?token=hunter2"}, "", "the URL has a query or fragment"},
		"a fragment":          {OCI{URL: "oci://r.example/app#hunter2"}, "", "the URL has a query or fragment"},
		"a digest that is no": {OCI{URL: "oci://r.example/app", Digest: "sha256:../x"}, "", `the digest "sha256:../x" is not of the form`},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := tc.source.check()
			if tc.says == "" {
				if err != nil || at.Path != tc.path {
					t.Errorf("got %v, %v", at, err)
				}
				return
			}
			sources.WantError(t, err, failure.ErrInvalid, tc.says)
			sources.WantNoSecret(t, err, "hunter2")
		})
	}
}

func TestRevisionsAreAsFluxWritesThem(t *testing.T) {
	for want, of := range map[string]tagged{
		"sha256:a": {digest: "sha256:a"}, "v1@sha256:a": {tag: "v1", digest: "sha256:a"}, "v 1@sha256:a": {tag: "v\n1", digest: "sha256:a"},
	} {
		if got := of.revision(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
