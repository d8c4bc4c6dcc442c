package folder

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/budget"
	"github.com/kubeop/kubeop/delivery/build"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// changing is a repository of a few manifests and kustomizations that changes at random.
type changing struct {
	*sources.GitRepo
	*rand.Rand
}

// put makes a path something else: a file, a folder above which there was a file, a link, or nothing.
func (c *changing) put() {
	c.T.Helper()
	paths := []string{
		"app/kustomization.yaml", "app/kustomization.yaml", "app/kustomization.yml", "app/config.yaml", "app/more.yaml", "app/sub/kustomization.yaml",
		"app/sub/config.yaml", "base/kustomization.yaml", "base/Kustomization", "base/config.yaml", "parts/kustomization.yaml", "parts/config.yaml",
		"patch.yaml", "app/x.env", "base", "parts", "app/sub", "absent", "elsewhere.txt",
	}
	at := paths[c.IntN(len(paths))]
	full := filepath.Join(c.Work, at)
	for above := filepath.Dir(full); above != c.Work; above = filepath.Dir(above) {
		if about, err := os.Lstat(above); err == nil && !about.IsDir() {
			c.check(os.Remove(above))
		}
	}
	c.check(os.RemoveAll(full))
	switch c.IntN(12) {
	case 0:
	case 1:
		c.check(os.MkdirAll(filepath.Dir(full), 0o755))
		c.check(os.Symlink("config.yaml", full))
	default:
		c.Write(at, c.content())
	}
}

func (c *changing) content() string {
	base := func() string {
		return []string{"../base", "../parts", "sub", "./sub/", "../base/config.yaml", "config.yaml", "more.yaml", "../absent"}[c.IntN(8)]
	}
	switch c.IntN(8) {
	case 0, 1:
		return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %c}, data: {of: %d}}", 'a'+rune(c.IntN(3)), c.IntN(4))
	case 2, 3:
		return fmt.Sprintf("resources: [%s, %s]\n", base(), base())
	case 4:
		return fmt.Sprintf("resources: [config.yaml]\npatches: [{path: %s}]\n", []string{"../patch.yaml", "more.yaml"}[c.IntN(2)])
	case 5:
		return "configMapGenerator: [{name: g, files: [../patch.yaml], envs: [x.env]}]\n"
	case 6:
		return "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [config.yaml]\nnamePrefix: z-\n"
	}
	return "{broken"
}

func (c *changing) check(err error) {
	c.T.Helper()
	if err != nil {
		c.T.Fatal(err)
	}
}

// TestTheSameReadsAreTheSameBuild changes repositories at random: as long as what a build read is the same, so is what it makes.
func TestTheSameReadsAreTheSameBuild(t *testing.T) {
	builds := []v1alpha1.Build{{}, {Components: []string{"../parts"}}, {Patches: []kustomize.Patch{{
		Patch: `[{"op": "add", "path": "/data/x", "value": "y"}]`, Target: &kustomize.Selector{Kind: "ConfigMap"},
	}}}}
	type result struct {
		reads         Reads
		digest, built string
	}
	same, news := 0, 0
	for seed := range uint64(6) {
		c := &changing{sources.NewGitRepo(t), rand.New(rand.NewPCG(seed, 0))}
		c.Write("app/kustomization.yaml", "resources: [../base, config.yaml]\n")
		c.Write("base/kustomization.yaml", "resources: [config.yaml]\n")
		for i, folder := range []string{"app", "base", "parts"} {
			c.Write(folder+"/config.yaml", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %c}, data: {}}", 'a'+rune(i)))
		}
		last := map[int]result{}
		for step := range 25 {
			if step > 0 {
				c.put()
			}
			c.Push("next")
			root := newest(c.GitRepo, DefaultLimits())
			for i := range builds {
				reading := root.Reading()
				files, err := Ignore(reading, "app", []string{"", "sub/\n*.env\n"}[seed%2])
				c.check(err)
				objects, failed := build.Folder(files, "app", &builds[i], budget.App{})
				text, err := json.Marshal(objects)
				c.check(err)
				now := result{built: fmt.Sprintf("%s %v", text, failed)}
				now.reads, now.digest, err = reading.Done()
				c.check(err)
				was, known := last[i]
				digest, err := root.DigestOf(was.reads)
				c.check(err)
				switch last[i] = now; {
				case known && digest != was.digest:
					news++
				case known && was.built != now.built:
					t.Fatalf("seed %d, step %d, build %d: of the same reads %q came\n%s\nand now\n%s", seed, step, i, was.reads, was.built, now.built)
				case known:
					same++
				}
			}
		}
	}
	if t.Logf("%d builds read the same, %d something else", same, news); same < 100 || news < 100 {
		t.Error("these changes try too little")
	}
}
