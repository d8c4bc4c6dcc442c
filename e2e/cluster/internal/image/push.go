package image

import (
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push makes an image of the binary, with others beside it, pushes it as repository:tag to a plain-HTTP registry and returns the reference to
// use in a pod.
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
