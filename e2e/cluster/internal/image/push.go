package image

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push builds an image of the binary and the others, see FromBinary. It pushes the image as repository:tag to a registry over plain HTTP, and
// returns the reference for pods.
func Push(registry, repository, binary string, others ...string) (string, error) {
	tag, err := name.NewTag(registry+"/"+repository, name.Insecure)
	if err != nil {
		return "", fmt.Errorf("parsing the image's name: %w", err)
	}
	image, err := FromBinary(binary, others...)
	if err != nil {
		return "", err
	}
	if err := remote.Write(tag, image); err != nil {
		return "", fmt.Errorf("pushing %s: %w", tag, err)
	}
	return tag.Name(), nil
}
