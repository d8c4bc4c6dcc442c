package pack

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"hash"
	"io"
	"path"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/kubeop/kubeop/delivery/fetch/failure"
	"github.com/kubeop/kubeop/delivery/fetch/limit"
	"github.com/kubeop/kubeop/delivery/few"
)

// maxNamed is the size in bytes up to which the name of a too large file is searched, because its content has to be read for that.
const maxNamed = 2 << 30

// oversized returns an error that names the file of a commit that is too large, if the name can be found. A pack does not contain paths, so
// the file's hash is computed from its content and looked up in the folders of the pack.
func oversized(pack io.ReadSeeker, big *packfile.ObjectHeader, scanner *packfile.Scanner, max int64) error {
	unnamed := failure.New(failure.ErrTooLarge, "an object of %s in the commit is larger than the limit of %s", failure.Size(big.Length), failure.Size(max))
	if big.Type != plumbing.BlobObject || big.Length > maxNamed {
		return unnamed
	}
	sum := hashOf(plumbing.BlobObject, big.Length)
	if _, _, err := scanner.NextObject(sum); err != nil {
		return unnamed
	}
	name, wanted := "", sumOf(sum)
	for range maxNamedDepth {
		in, err := parentOf(pack, wanted, big.Offset)
		if err != nil || in.name == "" {
			break
		}
		name, wanted = path.Join(in.name, name), in.folder
	}
	if name == "" {
		return unnamed
	}
	return failure.New(failure.ErrTooLarge, "the file %s has %s, and the limit is %s: take it out of Git, or deliver from a repository that does not have it", few.Quote(name), failure.Size(big.Length), failure.Size(max))
}

// maxNamedDepth is how many parent folders of the file are searched.
const maxNamedDepth = 32

// parent is a folder, and the name of an entry in it.
type parent struct {
	folder plumbing.Hash
	name   string
}

// parentOf searches the folder that contains an object among the undeltified folders in the pack before an offset: Git writes folders
// before files.
func parentOf(pack io.ReadSeeker, wanted plumbing.Hash, before int64) (parent, error) {
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return parent{}, fmt.Errorf("reading the pack: %w", err)
	}
	scanner := packfile.NewScanner(pack)
	_, count, err := scanner.Header()
	if err != nil {
		return parent{}, fmt.Errorf("reading the pack: %w", err)
	}
	for range count {
		header, err := scanner.NextObjectHeader()
		if err != nil || header.Offset >= before {
			return parent{}, err
		}
		content := &bytes.Buffer{}
		into := io.Writer(io.Discard)
		if header.Type == plumbing.TreeObject && header.Length <= limit.MiB {
			into = content
		}
		if _, _, err := scanner.NextObject(into); err != nil {
			return parent{}, err
		}
		if name := nameIn(content.Bytes(), wanted); name != "" {
			sum := hashOf(plumbing.TreeObject, header.Length)
			_, _ = sum.Write(content.Bytes())
			return parent{folder: sumOf(sum), name: name}, nil
		}
	}
	return parent{}, nil
}

func nameIn(content []byte, wanted plumbing.Hash) string {
	tree := &object.Tree{}
	if !bytes.Contains(content, wanted[:]) || tree.Decode(InMemory(plumbing.TreeObject, content)) != nil {
		return ""
	}
	for i := range tree.Entries {
		if tree.Entries[i].Hash == wanted {
			return tree.Entries[i].Name
		}
	}
	return ""
}

// hashOf starts the hash of an object. Write the object's content to it.
func hashOf(kind plumbing.ObjectType, size int64) hash.Hash {
	sum := sha1.New()
	_, _ = fmt.Fprintf(sum, "%s %d\x00", kind, size)
	return sum
}

func sumOf(sum hash.Hash) plumbing.Hash { return plumbing.Hash(sum.Sum(nil)) }
