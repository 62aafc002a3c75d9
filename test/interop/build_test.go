package interop_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	install       = "apt-get install -y --no-install-recommends default-jdk-headless maven libcurator-recipes-java"
	cacheVariable = "JOURNALD_TESTENV" // moves the cache, as it does for internal/testenv
	debianJars    = "/usr/share/java"
	classes       = "classes"
	classpath     = "classpath"
)

// program is a Java program, compiled.
type program struct {
	main      string
	classpath string
}

// source is a program that is to be compiled, of what lies in java.
type source struct {
	main    string
	against string // says what it is compiled against

	// resolve finds that, as a class path. The directory is for what it has to write.
	resolve func(ctx context.Context, dir string) (string, error)
}

// curatorProgram compiles a program that uses Debian's Curator.
func curatorProgram(t *testing.T, main string) program {
	t.Helper()
	var jars []string
	for _, name := range []string{
		"curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute", "guava", "slf4j-api", "slf4j-simple",
	} {
		jar := filepath.Join(debianJars, name+".jar")
		require.FileExists(t, jar, "install it with `%s`", install)
		jars = append(jars, jar)
	}
	path := strings.Join(jars, string(filepath.ListSeparator))
	return source{main, path, func(context.Context, string) (string, error) { return path, nil }}.compiled(t)
}

// flinkProgram compiles a program that uses Flink, in the version that a profile of pom.xml says.
func flinkProgram(t *testing.T, main, profile string) program {
	t.Helper()
	return source{main, profile, func(ctx context.Context, dir string) (string, error) {
		file := filepath.Join(dir, classpath)
		err := run(ctx, "mvn", "-B", "-q", "-ntp", "-P", profile, "dependency:build-classpath", "-Dmdep.outputFile="+file)
		if err != nil {
			return "", err
		}
		path, err := os.ReadFile(file)
		return strings.TrimSpace(string(path)), err
	}}.compiled(t)
}

// compiled returns the program as the cache has it, or else builds it.
func (s source) compiled(t *testing.T) program {
	t.Helper()
	dir, err := s.cache()
	require.NoError(t, err)
	if p, ok := s.load(dir); ok {
		return p
	}
	require.NoError(t, s.build(t.Context(), dir))
	p, ok := s.load(dir)
	require.True(t, ok, "%s was built, and is not whole", dir)
	return p
}

// cache is the directory of what is made of the source as it is now.
func (s source) cache() (string, error) {
	root := os.Getenv(cacheVariable)
	if root == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("finding the cache of test programs (set %s): %w", cacheVariable, err)
		}
		root = filepath.Join(user, "journald-testenv")
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%q", s.against)
	files, err := filepath.Glob("java/*.java")
	if err != nil {
		return "", err
	}
	for _, file := range append(files, "pom.xml") {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%q%q", file, text)
	}
	return filepath.Abs(filepath.Join(root, fmt.Sprintf("interop-%s-%s", s.main, hex.EncodeToString(sum.Sum(nil))[:12])))
}

// load finds the program where it was built, if all that it needs is still there.
func (s source) load(dir string) (program, bool) {
	text, err := os.ReadFile(filepath.Join(dir, classpath))
	if err != nil {
		return program{}, false
	}
	path := filepath.Join(dir, classes) + string(filepath.ListSeparator) + string(text)
	for _, file := range filepath.SplitList(path) {
		if _, err := os.Stat(file); err != nil {
			return program{}, false
		}
	}
	return program{main: s.main, classpath: path}, true
}

// build makes the program in a directory of its own, and renames that to dir, so that dir is whole or absent.
func (s source) build(ctx context.Context, dir string) (err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "interop-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	path, err := s.resolve(ctx, temp)
	if err != nil {
		return fmt.Errorf("finding what %s is compiled against: %w", s.main, err)
	}
	err = run(ctx, "javac", "--release", "17", "-d", filepath.Join(temp, classes), "-cp", path, "-sourcepath", "java",
		filepath.Join("java", s.main+".java"))
	if err != nil {
		return fmt.Errorf("compiling %s: %w", s.main, err)
	}
	if err := os.WriteFile(filepath.Join(temp, classpath), []byte(path), 0o644); err != nil {
		return err
	}
	return s.keep(temp, dir)
}

// keep puts what was built in the place of what is not whole any more. Where another process was faster, its is taken.
func (s source) keep(temp, dir string) error {
	err := os.Rename(temp, dir)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, whole := s.load(dir); whole {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	return os.Rename(temp, dir)
}

func run(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	output, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%w; install it with `%s`", err, install)
	case err != nil:
		return fmt.Errorf("%s: %w\n%s", name, err, output)
	}
	return nil
}
