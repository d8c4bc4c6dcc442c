package chart

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/folder"
	"github.com/kubeop/kubeop/delivery/fetch/git"
	"github.com/kubeop/kubeop/delivery/fetch/transport"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// commitFolders are folders of one commit, by name, each with these files.
func commitFolders(t *testing.T, folders map[string]map[string]string) map[string]*folder.Folder {
	t.Helper()
	repo := sources.NewGitRepo(t)
	for folder, files := range folders {
		for name, content := range files {
			repo.Write(folder+"/"+name, content)
		}
	}
	repo.Push("charts")
	commit, err := git.NewStore(t.TempDir(), loopback).Fetch(t.Context(), git.Source{URL: sources.ServeGit(t, repo, httptest.NewServer).RepoURL()})
	if err != nil {
		t.Fatal(err)
	}
	root := commit.Root
	subs := map[string]*folder.Folder{}
	for folder := range folders {
		var err error
		if subs[folder], err = root.Sub(folder); err != nil {
			t.Fatal(err)
		}
	}
	return subs
}

func commitFolder(t *testing.T, files map[string]string) *folder.Folder {
	t.Helper()
	return commitFolders(t, map[string]map[string]string{"root": files})["root"]
}

func needs(lines ...string) string {
	return "apiVersion: v2\nname: app\nversion: 1.0.0\ndependencies:\n- {" + strings.Join(lines, "}\n- {") + "}\n"
}

// got describes dependencies without their place on disk.
func got(all []Dependency) []string {
	var lines []string
	for _, d := range all {
		line := d.Name + " " + d.Version
		if d.Path != "" {
			line += " in " + d.Path
		}
		if len(d.Needs) > 0 {
			line += " with " + strings.Join(got(d.Needs), " and ")
		}
		lines = append(lines, line)
	}
	return lines
}

func TestDependenciesAreFetchedFromWhereTheChartSays(t *testing.T) {
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0", "1.1.0", "2.0.0")
	registry := sources.ServeOCI(t, httptest.NewTLSServer)
	pushChart(t, registry, "3.1.0", chartMediaType)
	helm, oci := server.URL+"/stable", registry.Repository()
	web := func(version string) string {
		return fmt.Sprintf("name: web, version: %q, repository: %q", version, helm)
	}
	cases := map[string]struct {
		files map[string]string
		want  []string
	}{
		"large":      {map[string]string{"Chart.yaml": "name: app\n" + strings.Repeat("#", maxChartFile-len("name: app\n"))}, nil},
		"none":       {map[string]string{"Chart.yaml": "name: app"}, nil},
		"newest":     {map[string]string{"Chart.yaml": needs(web("1.x"))}, []string{"web 1.1.0"}},
		"registry":   {map[string]string{"Chart.yaml": needs(fmt.Sprintf("name: web, version: '>=3', repository: %q", oci))}, []string{"web 3.1.0"}},
		"locked":     {map[string]string{"Chart.yaml": needs(web("1.x")), "Chart.lock": needs(web("1.0.0"))}, []string{"web 1.0.0"}},
		"lock slash": {map[string]string{"Chart.yaml": needs(web("1.x")), "Chart.lock": needs(fmt.Sprintf("name: web, version: 1.0.0, repository: %q", helm+"/"))}, []string{"web 1.0.0"}},
		"old form": {map[string]string{
			"Chart.yaml": "name: app", "requirements.yaml": needs(web("1.x")), "requirements.lock": needs(web("1.0.0")),
		}, []string{"web 1.0.0"}},
		"vendored archive":   {map[string]string{"Chart.yaml": needs(web("1.x")), "charts/web-1.0.0.tgz": "x"}, nil},
		"vendored folder":    {map[string]string{"Chart.yaml": needs(web("1.x")), "charts/any/Chart.yaml": "name: web"}, nil},
		"another's archive":  {map[string]string{"Chart.yaml": needs(web("1.x")), "charts/web-api-1.0.0.tgz": "x"}, []string{"web 1.1.0"}},
		"vendored, no index": {map[string]string{"Chart.yaml": needs("name: web, version: 1, repository: '@stable'"), "charts/web-1.0.0+b.1.tgz": "x"}, nil},
		"two aliases":        {map[string]string{"Chart.yaml": needs(web("1.x")+", alias: a", web("1.x")+", alias: b", web("2.x")+", alias: c")}, []string{"web 1.1.0", "web 2.0.0"}},
		"a folder": {map[string]string{
			"Chart.yaml": needs("name: lib, version: 0.x, repository: 'file://libs/lib'"), "Chart.lock": needs("name: lib, version: 0.0.1, repository: 'file://libs/lib'"),
			"libs/lib/Chart.yaml":   "name: lib\nversion: 0.2.0\ndependencies:\n- {name: base, version: 0.1.0, repository: file://../base}\n",
			"libs/base/Chart.yaml":  "name: base\nversion: 0.1.0\ndependencies:\n- {" + web("2") + "}\n",
			"libs/other/Chart.yaml": "name: [",
		}, []string{"lib 0.2.0 in libs/lib with base 0.1.0 in libs/base with web 2.0.0"}},
	}
	folders := map[string]map[string]string{}
	for name, tc := range cases {
		folders[name] = tc.files
	}
	roots := commitFolders(t, folders)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			chart := Folder{Root: roots[name], Path: ".", Auth: transport.Auth{CA: sources.Certificate(registry.Server)}}
			store := NewStore(t.TempDir(), loopback)
			all, err := store.Dependencies(t.Context(), chart)
			if diff := cmp.Diff(tc.want, got(all)); err != nil || diff != "" {
				t.Fatalf("%v\n%s", err, diff)
			}
			if missing, err := chart.Missing(); err != nil || (missing == "") != (len(tc.want) == 0) {
				t.Errorf("missing %q, %v", missing, err)
			}
			laid, err := Overlay(chart.Root, ".", all)
			if err != nil {
				t.Fatal(err)
			}
			if err := fstest.TestFS(laid, "Chart.yaml"); err != nil {
				t.Error(err)
			}
			for _, d := range all {
				if entries, err := laid.ReadDir("."); err != nil || !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == chartsFolder }) {
					t.Errorf("who looks for %s finds no charts/: %v, %v", d.Name, entries, err)
				}
			}
			own, err := chart.Root.Digest(".")
			if err != nil || (laid.Digest() == own) != (len(tc.want) == 0) {
				t.Errorf("digest %s of folder %s, %v", laid.Digest(), own, err)
			}
		})
	}
}

func TestUnusableDependenciesAreExplained(t *testing.T) {
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0", "2.0.0")
	server.Files["/odd/index.yaml"] = []byte(`entries: {web: [{version: "../1.0.0", urls: [x.tgz]}]}`)
	server.Files["/odd/x.tgz"], _ = sources.Gzip(t, "x")
	helm := server.URL + "/stable"
	locked := fmt.Sprintf("name: web, version: 1.x, repository: %q", helm)
	bomb := "hunter2: &hunter2 " + strings.Repeat("x", 100_000) + "\nb: [" + strings.Repeat("*hunter2, ", 3000) + "]\n"
	many := make([]string, maxDependencies+1)
	for i := range many {
		many[i] = fmt.Sprintf("name: web%d, version: 1, repository: %q", i, helm)
	}
	cases := map[string]struct {
		files map[string]string
		kind  error
		says  string
	}{
		"no chart":                  {map[string]string{"a": "b"}, failure.ErrNotFound, "there is no chart in app"},
		"no YAML":                   {map[string]string{"app/Chart.yaml": "hunter2: ["}, failure.ErrInvalid, "app/Chart.yaml is not the YAML of a chart"},
		"lock no YAML":              {map[string]string{"app/Chart.yaml": needs(locked), "app/Chart.lock": "hunter2: ["}, failure.ErrInvalid, "app/Chart.lock is not"},
		"aliases":                   {map[string]string{"app/Chart.yaml": bomb}, failure.ErrTooLarge, "the YAML aliases of app/Chart.yaml stand for too much"},
		"aliases in a lock":         {map[string]string{"app/Chart.yaml": needs(locked), "app/Chart.lock": bomb}, failure.ErrTooLarge, "the YAML aliases of app/Chart.lock"},
		"aliases, old form":         {map[string]string{"app/Chart.yaml": "name: app", "app/requirements.yaml": bomb}, failure.ErrTooLarge, "the YAML aliases of app/requirements.yaml"},
		"aliases, vendored":         {map[string]string{"app/Chart.yaml": needs(locked), "app/charts/x/Chart.yaml": bomb}, failure.ErrTooLarge, "the YAML aliases of app/charts/x/Chart.yaml"},
		"large":                     {map[string]string{"app/Chart.yaml": "name: app\n" + strings.Repeat("#", maxChartFile)}, failure.ErrTooLarge, "app/Chart.yaml is larger than the limit of 1 MiB"},
		"unknown chart":             {map[string]string{"app/Chart.yaml": needs(fmt.Sprintf("name: wep, version: 1, repository: %q", helm))}, failure.ErrNotFound, "dependency wep: fetching chart wep of " + helm},
		"unknown version":           {map[string]string{"app/Chart.yaml": needs(fmt.Sprintf("name: web, version: 9.x, repository: %q", helm))}, failure.ErrNotFound, `no version "9.x"; the newest are 2.0.0, 1.0.0`},
		"alias":                     {map[string]string{"app/Chart.yaml": needs("name: web, version: 1, repository: '@stable'")}, failure.ErrInvalid, `dependency web: @stable is an alias`},
		"alias, long form":          {map[string]string{"app/Chart.yaml": needs("name: web, version: 1, repository: 'alias:stable'")}, failure.ErrInvalid, "write the repository's URL"},
		"no repository":             {map[string]string{"app/Chart.yaml": needs("name: web, version: 1")}, failure.ErrNotFound, "has no repository and is not in charts/"},
		"not locked":                {map[string]string{"app/Chart.yaml": needs(locked), "app/Chart.lock": "dependencies: []"}, failure.ErrInvalid, `version "1.x" from ` + helm + " is not in app/Chart.lock"},
		"locked to other":           {map[string]string{"app/Chart.yaml": needs(locked), "app/Chart.lock": strings.ReplaceAll(needs(locked), "1.x", "2.0.0")}, failure.ErrInvalid, "helm dependency update"},
		"outside":                   {map[string]string{"app/Chart.yaml": needs("name: lib, version: 1, repository: file://../../lib")}, failure.ErrInvalid, "leads out of the folders"},
		"absolute":                  {map[string]string{"app/Chart.yaml": needs("name: etc, version: 1, repository: file:///etc")}, failure.ErrInvalid, "leads out of the folders"},
		"no such folder":            {map[string]string{"app/Chart.yaml": needs("name: lib, version: 1, repository: file://../lib")}, failure.ErrNotFound, "there is no chart in lib"},
		"another chart":             {map[string]string{"app/Chart.yaml": needs("name: lib, version: 1, repository: file://../lib"), "lib/Chart.yaml": "name: bil"}, failure.ErrInvalid, `the chart in lib has the name "bil"`},
		"another version":           {map[string]string{"app/Chart.yaml": needs("name: lib, version: 2.x, repository: file://../lib"), "lib/Chart.yaml": "name: lib\nversion: 1.0.0"}, failure.ErrNotFound, `no version "2.x"; the newest are 1.0.0`},
		"a circle":                  {map[string]string{"app/Chart.yaml": needs("name: app, version: 1, repository: file://../app")}, failure.ErrInvalid, "is there a circle?"},
		"too many":                  {map[string]string{"app/Chart.yaml": needs(many...)}, failure.ErrTooLarge, "the number of dependencies is over the limit of 64"},
		"a name that leads away":    {map[string]string{"app/Chart.yaml": needs(fmt.Sprintf("name: ../web, version: 1, repository: %q", helm))}, failure.ErrInvalid, "not the name of a chart"},
		"a version that leads away": {map[string]string{"app/Chart.yaml": needs(fmt.Sprintf("name: web, version: ../1.0.0, repository: %q", server.URL+"/odd"))}, failure.ErrInvalid, "cannot be the name of a file"},
		"a scheme":                  {map[string]string{"app/Chart.yaml": needs("name: web, version: 1, repository: git://host/x")}, failure.ErrInvalid, `the scheme "git" is not supported`},
	}
	folders := map[string]map[string]string{}
	for name, tc := range cases {
		folders[name] = tc.files
	}
	roots := commitFolders(t, folders)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := NewStore(t.TempDir(), loopback).Dependencies(t.Context(), Folder{Root: roots[name], Path: "app"})
			sources.WantError(t, err, tc.kind, tc.says)
			sources.WantNoSecret(t, err, "hunter2")
		})
	}
}

func TestDependenciesGetTheirOwnCredentials(t *testing.T) {
	own, other := sources.ServeHelm(t), sources.ServeHelm(t)
	own.Publish(t, "1.0.0")
	other.Publish(t, "1.0.0")
	own.Allow = sources.Basic("bot", "hunter2")
	chart := Folder{Path: ".", URL: own.URL + "/app.git", Auth: transport.Auth{Username: "bot", Password: "hunter2"}, Root: commitFolder(t, map[string]string{
		"Chart.yaml": needs("name: web, version: 1.x, alias: a, repository: "+own.URL+"/stable", "name: web, version: 1.x, repository: "+other.URL+"/stable"),
	})}
	store := NewStore(t.TempDir(), loopback)
	if _, err := store.Dependencies(t.Context(), chart); err != nil {
		t.Fatal(err)
	}
	if got := own.Requests(); got != "/stable/index.yaml with credentials\n/stable/charts/web-1.0.0.tgz with credentials" {
		t.Errorf("the own host got\n%s", got)
	}
	if got := other.Requests(); got != "/stable/index.yaml\n/stable/charts/web-1.0.0.tgz" {
		t.Errorf("the other host got\n%s", got)
	}
	// A docker configuration names its hosts itself.
	chart.URL, chart.Auth = "", transport.Auth{DockerConfig: []byte(`{"auths":{"` + own.Listener.Addr().String() + `":{"username":"bot","password":"hunter2"}}}`)}
	if _, err := store.Dependencies(t.Context(), chart); err != nil {
		t.Error(err)
	}
	if got := other.Requests(); strings.Contains(got, "with credentials") {
		t.Errorf("the other host got\n%s", got)
	}
}

// TestARegistryIsForDependenciesWithoutCredentials of the chart's own.
func TestARegistryIsForDependenciesWithoutCredentials(t *testing.T) {
	config := func(place, user string) []byte {
		return fmt.Appendf(nil, `{"auths":{%q:{"username":%q,"password":"p"}}}`, place, user)
	}
	registries := map[string]transport.Access{
		"r.example":   {Auth: transport.Auth{DockerConfig: config("r.example", "robot")}, Insecure: true},
		"docker.io":   {Auth: transport.Auth{DockerConfig: config("docker.io", "robot")}},
		"charts.test": {Auth: transport.Auth{DockerConfig: config("charts.test", "robot")}},
	}
	basic := transport.Auth{Username: "bot", Password: "p"}
	for name, tc := range map[string]struct {
		auth             transport.Auth
		repository, user string
		insecure         bool
	}{
		"a registry":                   {transport.Auth{}, "oci://r.example/charts", "robot", true},
		"the Hub":                      {transport.Auth{}, "oci://registry-1.docker.io/charts", "robot", false},
		"another port":                 {transport.Auth{}, "oci://r.example:5000/charts", "", false},
		"another registry":             {transport.Auth{}, "oci://other.example/charts", "", false},
		"a Helm repository":            {transport.Auth{}, "https://r.example/charts", "", false},
		"credentials of the chart":     {basic, "oci://charts.test/charts", "bot", false},
		"not for another host":         {basic, "oci://r.example/charts", "robot", true},
		"named in the chart's Secret":  {transport.Auth{DockerConfig: config("r.example/charts/web", "own")}, "oci://r.example/charts/", "own", false},
		"a token in that Secret":       {transport.Auth{DockerConfig: []byte(`{"auths":{"r.example":{"identitytoken":"t"}}}`)}, "oci://r.example/charts", "", false},
		"another place in that Secret": {transport.Auth{DockerConfig: config("r.example/charts/api", "own")}, "oci://r.example/charts", "robot", true},
	} {
		got, err := Folder{URL: "https://charts.test/app.git", Auth: tc.auth, Registries: registries}.accessTo(tc.repository, "web")
		used, _, failed := got.Auth.ForHost(strings.TrimSuffix(strings.TrimPrefix(tc.repository, "oci://"), "/") + "/web")
		if err != nil || failed != nil || used.Username != tc.user || got.Insecure != tc.insecure {
			t.Errorf("%s: user %q, insecure %t, %v, %v", name, used.Username, got.Insecure, err, failed)
		}
	}
}

// TestADependencyIsFetchedAsItsRegistrySays, and not at all while the chart's own credentials cannot be read.
func TestADependencyIsFetchedAsItsRegistrySays(t *testing.T) {
	registry := sources.ServeOCI(t, httptest.NewServer)
	pushChart(t, registry, "1.0.0", chartMediaType)
	chart := Folder{Path: ".", Registries: map[string]transport.Access{registry.Listener.Addr().String(): {Insecure: true}}, Root: commitFolder(t, map[string]string{
		"Chart.yaml": needs(fmt.Sprintf("name: web, version: 1.x, repository: %q", registry.Repository())),
	})}
	all, err := NewStore(t.TempDir(), loopback).Dependencies(t.Context(), chart)
	if diff := cmp.Diff([]string{"web 1.0.0"}, got(all)); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	mirrored := Folder{Path: ".", Root: commitFolder(t, map[string]string{"Chart.yaml": needs("name: web, version: 1.x, repository: oci://r.invalid/charts")})}
	mirrored.Registries = map[string]transport.Access{"r.invalid": {Mirror: &transport.Mirror{At: registry.Listener.Addr().String(), Access: transport.Access{Insecure: true}}}}
	all, err = NewStore(t.TempDir(), loopback).Dependencies(t.Context(), mirrored)
	if diff := cmp.Diff([]string{"web 1.0.0"}, got(all)); diff != "" || err != nil {
		t.Errorf("from a mirror: %v\n%s", err, diff)
	}
	chart.Auth.DockerConfig = []byte("no JSON")
	_, err = NewStore(t.TempDir(), loopback).Dependencies(t.Context(), chart)
	sources.WantError(t, err, failure.ErrInvalid, ".dockerconfigjson")
}

// TestADependencyThatIsNotAllowedIsNotFetched, also one of a folder that is a dependency itself. Folders of the same commit are not asked about.
func TestADependencyThatIsNotAllowedIsNotFetched(t *testing.T) {
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0")
	var asked []string
	refused := errors.New("no policy allows it")
	chart := Folder{Path: ".", Allow: func(repository, chart string) error {
		asked = append(asked, chart+" of "+repository)
		return refused
	}, Root: commitFolder(t, map[string]string{
		"Chart.yaml":     needs("name: lib, version: 1.x, repository: file://lib"),
		"lib/Chart.yaml": "name: lib\nversion: 1.0.0\ndependencies:\n- {name: web, version: 1.x, repository: " + server.URL + "/stable}\n",
	})}
	if _, err := NewStore(t.TempDir(), loopback).Dependencies(t.Context(), chart); !errors.Is(err, refused) || !strings.Contains(err.Error(), "lib: dependency web: ") {
		t.Errorf("got %v", err)
	}
	if _, err := chart.Missing(); !errors.Is(err, refused) {
		t.Errorf("looking for what is missing: %v", err)
	}
	if want := []string{"web of " + server.URL + "/stable"}; !cmp.Equal(asked[:1], want) || server.Requests() != "" {
		t.Errorf("asked are %v, and the server %q", asked, server.Requests())
	}
	refused = nil
	if all, err := NewStore(t.TempDir(), loopback).Dependencies(t.Context(), chart); err != nil || len(all) != 1 || all[0].Needs[0].Version != "1.0.0" {
		t.Errorf("allowed: got %v, %v", all, err)
	}
}

func TestTheRepositoryOfADependencyOnTheChartsHostGetsItsCredentials(t *testing.T) {
	own := transport.Auth{Username: "bot", Password: "hunter2", CA: []byte("x")}
	chart := Folder{URL: "https://charts.example.com/app.git", Auth: own}
	for repository, all := range map[string]bool{
		"https://charts.example.com/stable": true, "oci://charts.example.com/stable": true, "https://charts.example.com:443/stable": true,
		"https://charts.example.com:8443/stable": false, "oci://other.example.com/stable": false, "http://charts.example.com/stable": false,
		"https://charts.example.com.evil.com/": false, "https://[::1": false, "": false,
	} {
		want := "Auth{ca.crt}"
		if all {
			want = "Auth{basic, ca.crt}"
		}
		if got := chart.authFor(repository).String(); got != want {
			t.Errorf("%q gets %s, want %s", repository, got, want)
		}
		if got := (Folder{Auth: own}).authFor(repository).String(); got != "Auth{ca.crt}" {
			t.Errorf("%q of a chart without a URL gets %s", repository, got)
		}
	}
}

func TestMissingChangesWithTheDependencies(t *testing.T) {
	base := map[string]string{
		"Chart.yaml":     needs("name: lib, version: 1.x, repository: file://lib", "name: web, version: 1.x, repository: https://h/c"),
		"lib/Chart.yaml": "name: lib\nversion: 1.0.0\n", "values.yaml": "a: 1",
	}
	changes := map[string]struct {
		file, content string
		same          bool
	}{
		"nothing":                  {"values.yaml", "a: 1", true},
		"values":                   {"values.yaml", "a: 2", true},
		"a template":               {"templates/x.yaml", "a: 2", true},
		"values of the dependency": {"lib/values.yaml", "a: 2", true},
		"a range":                  {"Chart.yaml", strings.Replace(base["Chart.yaml"], "version: 1.x, repository: https", "version: 2.x, repository: https", 1), false},
		"a lock":                   {"Chart.lock", needs("name: web, version: 1.2.3, repository: https://h/c"), false},
		"one of the dependency":    {"lib/Chart.yaml", "name: lib\nversion: 1.0.0\ndependencies:\n- {name: x, version: 1, repository: https://h/c}\n", false},
		"vendored":                 {"charts/web-1.0.0.tgz", "x", false},
	}
	folders := map[string]map[string]string{"base": base}
	for name, change := range changes {
		folders[name] = maps.Clone(base)
		folders[name][change.file] = change.content
	}
	digests := map[string]string{}
	for name, root := range commitFolders(t, folders) {
		var err error
		if digests[name], err = (Folder{Root: root}).Missing(); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range changes {
		if (digests[name] == digests["base"]) != change.same {
			t.Errorf("%s: %s and %s", name, digests[name], digests["base"])
		}
	}
}

func TestOverlayShowsTheFetchedDependencies(t *testing.T) {
	server := sources.ServeHelm(t)
	server.Publish(t, "1.0.0")
	root := commitFolder(t, map[string]string{
		"chart/Chart.yaml":            needs("name: web, version: 1.x, repository: "+server.URL+"/stable", "name: lib, version: 0.x, repository: file://../lib"),
		"chart/charts/own/Chart.yaml": "name: own", "chart/values.yaml": "a: 1", "lib/Chart.yaml": "name: lib\nversion: 0.1.0", "lib/templates/a.yaml": "b",
	})
	store := NewStore(t.TempDir(), loopback)
	all, err := store.Dependencies(t.Context(), Folder{Root: root, Path: "./chart/"})
	if err != nil {
		t.Fatal(err)
	}
	laid, err := Overlay(root, "chart", all)
	if err != nil {
		t.Fatal(err)
	}
	if err := fstest.TestFS(laid, "Chart.yaml", "values.yaml", "charts/own/Chart.yaml", "charts/web-1.0.0.tgz", "charts/lib-0.1.0/Chart.yaml", "charts/lib-0.1.0/templates/a.yaml"); err != nil {
		t.Error(err)
	}
	want, _ := sources.Gzip(t, "1.0.0")
	if content, err := laid.ReadFile("charts/web-1.0.0.tgz"); err != nil || string(content) != string(want) {
		t.Errorf("not what was fetched: %v", err)
	}
	for _, name := range []string{"gone", "charts/gone"} {
		if entries, err := laid.ReadDir(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was listed: %v, %v", name, entries, err)
		}
	}
	for _, name := range []string{"charts/web-1.0.0.tgz/x", "charts/x", "../lib/Chart.yaml"} {
		if _, err := laid.Open(name); err == nil {
			t.Errorf("%s was opened", name)
		}
		if _, err := laid.ReadFile(name); err == nil {
			t.Errorf("%s was read", name)
		}
	}
	same, err := Overlay(root, "chart", []Dependency{all[1], all[0]})
	if err != nil || same.Digest() != laid.Digest() {
		t.Errorf("the order changed the digest: %v", err)
	}
	all[0].Archive.Digest = "sha256:other"
	if other, err := Overlay(root, "chart", all); err != nil || other.Digest() == laid.Digest() {
		t.Errorf("another archive did not change the digest: %v", err)
	}
	nested := []Dependency{{Path: "lib", Needs: all}}
	if !store.hasAll(nested) {
		t.Error("it does not have what it fetched")
	}
	if err := os.Remove(all[0].Archive.Path); err != nil {
		t.Fatal(err)
	}
	if store.hasAll(nested) {
		t.Error("it has what is gone")
	}
	_, err = laid.ReadFile("charts/web-1.0.0.tgz")
	if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "was swept: fetch it again") {
		t.Errorf("got %v", err)
	}
	for _, read := range []func() error{
		func() error { _, err := laid.Stat("charts/web-1.0.0.tgz"); return err },
		func() error { _, err := laid.ReadDir("charts"); return err },
		func() error { _, err := laid.Open("charts/web-1.0.0.tgz"); return err },
	} {
		if err := read(); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "was swept: fetch it again") {
			t.Errorf("got %v", err)
		}
	}
	_, err = Overlay(root, "gone", nil)
	sources.WantError(t, err, failure.ErrNotFound, "")
}

func TestOverlayCleansThePath(t *testing.T) {
	root := commitFolder(t, map[string]string{"deploy/chart/Chart.yaml": "name: app"})
	want, err := root.Digest("deploy/chart")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"deploy/chart", "./deploy/chart/", "deploy//chart", "deploy/x/../chart"} {
		laid, err := Overlay(root, path, nil)
		if err != nil || laid.Digest() != want {
			t.Fatalf("%s: %v", path, err)
		}
		if _, err := laid.Stat(chartsFolder); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: it has charts/ although nothing was added: %v", path, err)
		}
		if missing, err := (Folder{Root: root, Path: path}).Missing(); missing != "" || err != nil {
			t.Errorf("%s misses %s, %v", path, missing, err)
		}
	}
	want, err = root.Digest(".")
	if err != nil {
		t.Fatal(err)
	}
	if laid, err := Overlay(root, "", nil); err != nil || laid.Digest() != want {
		t.Errorf("the root: %v", err)
	}
	for _, path := range []string{"..", "/deploy", "deploy/../../x"} {
		_, err := Overlay(root, path, nil)
		sources.WantError(t, err, failure.ErrInvalid, "leads out of the folder")
		_, err = Folder{Root: root, Path: path}.Missing()
		sources.WantError(t, err, failure.ErrInvalid, "leads out of the folder")
	}
}

// TestAChartIsMadeFromItsFolderAndThoseOfItsDependencies, also from those of dependencies of dependencies, and not from archives.
func TestAChartIsMadeFromItsFolderAndThoseOfItsDependencies(t *testing.T) {
	got := Reads("./charts/web/", []Dependency{
		{Name: "redis", Version: "1.0.0"}, {Name: "db", Path: "charts/db", Needs: []Dependency{{Name: "lib", Path: "lib"}}},
	})
	if diff := cmp.Diff(folder.Reads{"charts/web/", "charts/db/", "lib/"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
