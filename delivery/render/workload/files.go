package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/render"
)

// These are the limits of the config files of an app: the largest ConfigMap that the API server accepts, and the largest list in its
// record.
const (
	maxConfigBytes = 1 << 20
	maxConfigFiles = 1000
)

// configFiles are the files of an app's folder that its pods mount. All are in one ConfigMap with a constant name, and are mounted by
// subPath, so a container keeps the files that it started with. So old pods keep their files while new pods replace them. With an immutable
// ConfigMap for each content, the old ConfigMap would be deleted as soon as the new one is applied, and old pods could not restart.
type configFiles struct {
	// content by key. The key is the file's path in the folder, with "_" for characters that a key must not have.
	content map[string][]byte
	paths   map[string]string
	// items map the keys to paths in the volume: below the number of the file's entry.
	items  []corev1.KeyToPath
	mounts []corev1.VolumeMount
	// digest of all content, "" without files.
	digest string
	bytes  int
}

// configVolume is the name of the volume with the config files.
const configVolume = "config"

func readConfigFiles(entries []v1alpha1.ImageFiles, folder fs.FS) (configFiles, error) {
	c := configFiles{content: map[string][]byte{}, paths: map[string]string{}}
	if len(entries) == 0 {
		return c, nil
	}
	if folder == nil {
		return c, errors.New("spec.image.configFiles: the app was not declared in a repository, so there are no files beside it")
	}
	for n, entry := range entries {
		if err := c.entry(n, entry, folder); err != nil {
			return c, fmt.Errorf("spec.image.configFiles[%d]: %w", n, err)
		}
	}
	c.digest = digestOfFiles(c.content)
	return c, nil
}

// entry adds a file, or the files of a folder.
func (c *configFiles) entry(n int, entry v1alpha1.ImageFiles, folder fs.FS) error {
	at := path.Clean(entry.Path)
	info, err := render.Stat(folder, at)
	if err != nil {
		return err
	}
	mount := corev1.VolumeMount{Name: configVolume, MountPath: entry.MountPath, ReadOnly: true, SubPath: fmt.Sprint(n)}
	if !info.IsDir() {
		mount.SubPath = path.Join(mount.SubPath, path.Base(at))
		c.mounts = append(c.mounts, mount)
		return c.file(n, at, folder)
	}
	c.mounts = append(c.mounts, mount)
	files, err := filesIn(folder, at)
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := c.file(n, name, folder); err != nil {
			return err
		}
	}
	return nil
}

// filesIn lists the files directly in a folder. It skips the file that declares the app.
func filesIn(folder fs.FS, at string) ([]string, error) {
	entries, err := fs.ReadDir(folder, at)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", at, err)
	}
	var files []string
	for _, e := range entries {
		name := path.Join(at, e.Name())
		switch {
		case path.Base(name) != e.Name():
			return nil, render.CheckName(name, e.Name())
		case e.IsDir(), name == "app.yaml":
		default:
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: holds no files; those of folders in it are not taken", at)
	}
	return files, nil
}

func (c *configFiles) file(n int, name string, folder fs.FS) error {
	key, err := c.keyOf(name)
	if err != nil {
		return err
	}
	c.items = append(c.items, corev1.KeyToPath{Key: key, Path: path.Join(fmt.Sprint(n), path.Base(name))})
	if len(c.items) > maxConfigFiles {
		return fmt.Errorf("an app may have %d config files: %w", maxConfigFiles, render.ErrTooLarge)
	}
	if _, known := c.content[key]; known {
		return nil
	}
	data, err := render.ReadFile(folder, name)
	if err != nil {
		return err
	}
	if c.bytes += len(data); c.bytes > maxConfigBytes {
		return fmt.Errorf("%s: with it the config files have %d bytes; together they may have %d, as a ConfigMap: put large files into the image or a volume: %w",
			name, c.bytes, maxConfigBytes, render.ErrTooLarge)
	}
	c.content[key] = data
	return nil
}

// keyOf returns the key of a file in the ConfigMap.
func (c *configFiles) keyOf(name string) (string, error) {
	key := strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, name)
	if wrong := validation.IsConfigMapKey(key); len(wrong) > 0 {
		return "", fmt.Errorf("%.300q: cannot be the key of a ConfigMap: %s", name, wrong[0])
	}
	if other, taken := c.paths[key]; taken && other != name {
		return "", fmt.Errorf("%q and %q would have the same key %q in the ConfigMap: rename one", other, name, key)
	}
	c.paths[key] = name
	return key, nil
}

func digestOfFiles(content map[string][]byte) string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(content)) {
		for _, part := range [][]byte{[]byte(key), content[key]} {
			// The length prefix distinguishes "ab"+"c" from "a"+"bc".
			_ = binary.Write(hash, binary.BigEndian, int64(len(part)))
			hash.Write(part)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

func (i *image) configMap() *corev1.ConfigMap {
	m := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: i.meta("-config")}
	for key, data := range i.config.content {
		if utf8.Valid(data) {
			if m.Data == nil {
				m.Data = map[string]string{}
			}
			m.Data[key] = string(data)
			continue
		}
		if m.BinaryData == nil {
			m.BinaryData = map[string][]byte{}
		}
		m.BinaryData[key] = data
	}
	return m
}
