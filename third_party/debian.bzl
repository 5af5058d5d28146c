"""Repository rules for what Debian packages install.

The headers lie in /usr/include, which the compiler searches anyway; a package's repository therefore only
  * fails with the name of the missing Debian package, and
  * provides `:package`, a library that puts the installed version on each user's command line, so that
    caches miss after an upgrade.
"""

_LIBRARY_FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib/llvm-19/lib", "/usr/lib"]

def _identifier(text):
    return "".join([c if c.isalnum() else "_" for c in text.elems()])

def _require(repository_ctx, package, path):
    if not repository_ctx.path(path).exists:
        fail("\n\n  Debian package '{package}' is missing (no {path}).\n  Install it with 'apt-get install {package}', or run './nao test', which installs all that is missing.\n".format(
            package = package,
            path = path,
        ))

def _version(repository_ctx, package):
    if not repository_ctx.which("dpkg-query"):
        return "unknown"
    found = repository_ctx.execute(["dpkg-query", "-W", "-f=${Version}", package])
    return found.stdout if found.return_code == 0 else "unknown"

def _debian_package_impl(repository_ctx):
    package = repository_ctx.attr.package
    for path in repository_ctx.attr.requires:
        _require(repository_ctx, package, path)
    headers = ""
    if repository_ctx.attr.include_dir:
        _require(repository_ctx, package, repository_ctx.attr.include_dir)
        repository_ctx.symlink(repository_ctx.attr.include_dir, "include")
        headers = "    hdrs = glob([\"include/**\"], allow_empty = False),\n    includes = [\"include\"],\n"
    archive = ""
    if repository_ctx.attr.static_library:
        library = repository_ctx.attr.static_library
        for folder in _LIBRARY_FOLDERS:
            if not archive and repository_ctx.path(folder + "/" + library).exists:
                repository_ctx.symlink(folder + "/" + library, library)
                archive = "    srcs = [\"%s\"],\n" % library
        if not archive:
            fail("\n\n  Debian package '%s' installed no %s where it was looked for.\n" % (package, library))
    repository_ctx.file("BUILD", """\
cc_library(
    name = "package",
{archive}    defines = ["POLYNAO_{name}={version}"],
{headers}    visibility = ["//visibility:public"],
)
""".format(
        name = _identifier(package).upper(),
        version = _identifier(_version(repository_ctx, package)),
        archive = archive,
        headers = headers,
    ))

    # Shared libraries by glob, for a package whose set of libraries changes between Debian releases.
    libraries = []
    archives = []
    prefix = repository_ctx.attr.library_prefix
    if prefix:
        for folder in _LIBRARY_FOLDERS:
            path = repository_ctx.path(folder)
            if libraries or not path.exists:
                continue
            for file in path.readdir():
                name = file.basename
                if name.startswith("lib" + prefix) and name.endswith(".so") and "test" not in name and "mock" not in name:
                    libraries.append("-l" + name[len("lib"):-len(".so")])
                    archives.append("-l:" + name[:-len(".so")] + ".a")
        if not libraries:
            fail("\n\n  Debian package '%s' installed no lib%s*.so where they were looked for.\n" % (package, prefix))
    if repository_ctx.attr.archives_command:
        found = repository_ctx.execute(repository_ctx.attr.archives_command)
        if found.return_code != 0:
            fail("\n\n  %s: %s\n" % (" ".join(repository_ctx.attr.archives_command), found.stderr))
        archives = found.stdout.strip().split(" ")
    repository_ctx.file(
        "libraries.bzl",
        "LIBRARIES = %r\nARCHIVES = %r\n" % (sorted(libraries), archives),
    )

debian_package = repository_rule(
    implementation = _debian_package_impl,
    doc = "A library installed by a Debian package, as `@name//:package`.",
    local = True,
    attrs = {
        "package": attr.string(mandatory = True),
        "requires": attr.string_list(doc = "Files that show the package is installed."),
        "include_dir": attr.string(doc = "Headers outside the compiler's own search path."),
        "library_prefix": attr.string(doc = "Lists lib<prefix>*.so in @name//:libraries.bzl, and the archives beside them as ARCHIVES."),
        "archives_command": attr.string_list(doc = "Prints the linker options for ARCHIVES instead."),
        "static_library": attr.string(doc = "lib<name>.a, which :package links."),
    },
)

def _debian_rules_impl(repository_ctx):
    root = repository_ctx.attr.root
    _require(repository_ctx, repository_ctx.attr.package, root)
    if not repository_ctx.attr.substitute_in:
        for entry in repository_ctx.path(root).readdir():
            repository_ctx.symlink(entry, entry.basename)
        return
    copied = repository_ctx.execute(["cp", "-rL", root + "/.", "."])
    if copied.return_code != 0:
        fail("Copying %s: %s" % (root, copied.stderr))
    for file in repository_ctx.attr.substitute_in:
        if not repository_ctx.path(file).exists:
            continue
        text = repository_ctx.read(file)
        for old, new in repository_ctx.attr.substitutions.items():
            text = text.replace(old, new)
        repository_ctx.file(file, text, executable = False)

debian_rules = repository_rule(
    implementation = _debian_rules_impl,
    doc = "Bazel rules installed by a Debian package, with textual substitutions in some of their files.",
    local = True,
    attrs = {
        "package": attr.string(mandatory = True),
        "root": attr.string(mandatory = True),
        "substitute_in": attr.string_list(),
        "substitutions": attr.string_dict(),
    },
)
